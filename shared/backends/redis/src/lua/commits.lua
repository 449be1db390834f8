-- What the functions that write commits share.

-- The results of branches, as numbers.
local DONE, FAILED = 1, 2
-- The maximum number of history elements removed with one commit.
local TRIMMED = 1000
-- Libraries, which are not available yet when this is loaded.
local call, match, find, sub, format, pack, unpacked, encode, decode

local function begin_commit()
  if call then return end
  call, match, find, sub, format = redis.call, string.match, string.find, string.sub, string.format
  pack, unpacked, encode, decode = cmsgpack.pack, cmsgpack.unpack, struct.pack, struct.unpack
end

-- Removes the oldest elements of history that are not needed, and returns the number of remaining lines. The rest is
-- left to later commits. Stops cleanly if the list isn't as expected.
local function trim(K, list, lines, keep)
  for _ = 1, TRIMMED do
    if lines <= keep then break end
    local oldest = tonumber(match(call('LINDEX', list, 0) or '', '^%d+'))
    if not oldest or lines - oldest < keep then break end
    call('LPOP', list)
    call('HINCRBY', K, 'hd', oldest)
    lines = lines - oldest
  end
  return lines
end

-- The numbers of a fork with a branch's change, and by how many KiB the results grow; nil if the fork isn't as expected.
-- If that notifies the parent: the number of the notification, of the results that are done and that the parent reads,
-- and the bytes of all. The parent reads none after a batch that isn't the last one.
local function counted(text, index, live_change, made, result, size, is_closed)
  if not text then return nil end
  local total, open, needed, notifications, done, failed, live, notified, closed, stamp, bytes, most = decode(NUMBERS, text)
  if made ~= 0 and stamp ~= made or index >= open or closed == 1 and not is_closed then return nil end
  local before, notifies = bytes, false
  if result ~= 0 then
    bytes = bytes + size
    if result == DONE then
      if most > 0 and bytes > most then return nil end
      done = done + 1
    else
      failed = failed + 1
    end
    notifies = notified == 0 and (result == FAILED or done >= needed)
    if notifies then notified, notifications = 1, notifications + 1 end
  end
  text = encode(NUMBERS, total, open, needed, notifications, done, failed, live + live_change, notified, closed, stamp,
    bytes, most)
  local grown = before == bytes and 0 or math.floor(bytes / 1024) - math.floor(before / 1024)
  if not notifies then return text, grown end
  local read = done + failed
  if failed == 0 and open == needed and open < total then read = 0 end
  return text, grown, notifications, done, read, bytes
end

-- Notifies the holder of a scope that it has a new input. If its lease is over, nobody listens.
local function notify(NS, lease, member)
  local holder = lease and match(lease, '^%d+ %d+ %d (%S+) ')
  if holder then call('PUBLISH', NS .. ':p:' .. holder, member) end
end

-- The namespace, from the key of an instance.
local function namespace_of(K) return match(K, '^{([^}]*):%d+}') end

-- What tells the parent that a fork is complete: the number of the input, its inbox, the field of the input, the input.
-- `box`: its inbox before. The number is new, so it has no such input.
local function notification(parent, fork, box, notifications, done)
  local number = format('%s-%d', fork, notifications)
  box = box and unpacked(box) or {}
  box[#box + 1] = { number, 'fork-' .. number, 'j', '' }
  local input = format('{"Joined":{"fork":%s,"results":[],"done":%d}}', fork, done)
  return number, pack(box), 'i:' .. parent .. ':' .. number, input
end

-- The answer if the parent was notified. `taken`: the lease that was taken, if any.
local function complete(results, bytes, number, taken)
  return format('j %d %.0f %s', results, bytes, number) .. (taken and ' ' .. taken or '')
end

-- Changes the size of the instance. `weight`: the size, as text or false.
local function weigh(K, weight, gain)
  local new = math.max((tonumber(weight) or 0) + gain, 0)
  if new > 0 then
    call('HSET', K, 'z', format('%d', new))
  elseif weight then
    call('HDEL', K, 'z')
  end
end
