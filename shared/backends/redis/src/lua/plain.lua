-- Applies a common commit in one straight line: of the root or of one of its branches, without changes of timers
-- or waits, without effects or late events, and with all inputs of the inbox consumed. The result is that of
-- commit.lua (a test compares them) for half the cost. Unusual cases are detected before anything is written,
-- and left to commit.lua.
--
-- KEYS: 1 instance, 2 ready, 3 what it waits for, 4 history, 5 ended; 6.. where it ends, the listings of running
-- instances and of those with the new status: by time and by workflow each. ARGV: 1 instance, 2 namespace, 3 scope, 4
-- token, 5 revision that was read, 6 record, 7 flags, 8 '1': the scope is gone, 9 at, 10 history entries to keep, 11
-- letters: q only if there is nothing new, r give the lease back, c closes a fork, f forks, p reports, e ends; 12 lease
-- in milliseconds, 13 holder, 14 its attempt, 15 the stamp that was seen, 16 the KiB that it adds at most, 17 those
-- that the instance may hold; then a counted list: ids of consumed inputs; lines of history, and a counted list of
-- elements that hold them; then what the letters need: number of the fork to close; number, origin, total, open, needed
-- and most bytes of the new one; the result; status, output and error. Returns 'general' for other commits, otherwise
-- in one text, since lists cost more: '1' if the lease was released or '0', the token if it was taken now or '0',
-- scopes that were woken.

-- Libraries, which are not available yet when this is loaded.
local call, match, find, sub, concat, pack, unpacked
local GENERAL = 'general'
-- More than this at once is left to commit.lua.
local WIDE = 500
-- Elements of history that are removed with one commit, as in commit.lua.
local TRIMMED = 1000
-- Places of a fork's numbers.
local TOTAL, OPEN, NEEDED, TOLD, CLOSED, TELLINGS, DONE, FAILED, LIVE = 1, 2, 3, 4, 5, 6, 7, 8, 9
local BYTES, MOST = 11, 12

local KIB = 1024

local function kib(bytes) return math.floor(bytes / KIB) end
local function has(letters, letter) return find(letters, letter, 1, true) end
local function fork_of(text) return text and unpacked(text) end
local function short(id) return #id > 40 and redis.sha1hex(id) or id end

-- Ids of inputs that were consumed, and those of the inbox now; the oldest go.
local function remember(seen, items)
  for _, item in ipairs(items) do
    if item[3] ~= 'o' then seen = seen .. short(item[2]) .. '\1' end
  end
  while #seen > 4096 do seen = sub(seen, find(seen, '\1', 2, true), -1) end
  return seen
end

-- Returns the input that reports a fork to its parent: with the results of its branches in order, false
-- where there is none; without results if the parent only has to open the next batch.
local function joined(number, fork, results)
  local parts = {}
  for at = 1, results and fork[OPEN] or 0 do
    if results[at] then parts[#parts + 1] = '[' .. (at - 1) .. ',' .. results[at] .. ']' end
  end
  return '{"Joined":{"fork":' .. number .. ',"results":[' .. concat(parts, ',')
    .. '],"done":' .. fork[DONE] .. '}}'
end

-- Returns the lines of history without the oldest elements that are not needed, except those of later commits.
-- Nothing is half done if the list isn't as expected.
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

-- As the prelude's next_number.
local function number_after(last)
  if last then return string.format('%.0f', last + 1) end
  local time = call('TIME')
  return string.format('%.0f', 16 * (time[1] * 1000 + math.floor(time[2] / 1000)))
end

local function main(KEYS, ARGV)
  if not call then
    call, match, find, sub, concat = redis.call, string.match, string.find, string.sub, table.concat
    pack, unpacked = cmsgpack.pack, cmsgpack.unpack
  end
  local K, READY, INST, S, letters = KEYS[1], KEYS[2], ARGV[1], ARGV[3], ARGV[11]
  local gone, untaken = ARGV[8] == '1', ARGV[4] == '0'
  local history = 19 + ARGV[18]
  local lines, elements = tonumber(ARGV[history]), tonumber(ARGV[history + 1])
  local rest = history + elements + 2
  local closing = has(letters, 'c') and ARGV[rest]
  if closing then rest = rest + 1 end

  -- Read the present records.
  local number, index, name, found, kept, held
  if S == 'r' then
    if has(letters, 'e') then
      found = call('HMGET', K, 's', 'p', 'm:r', 'l:r', 'q:r', 't:r', 'n', 'x:r', 'F:r', 'g:r.' .. (closing or ''),
        'lw', 'w', 'k', 'key', 'out', 'err', 'end', 'O', 'hn', 'z')
      kept, held = found[19], found[20]
    else
      found = call('HMGET', K, 's', 'p', 'm:r', 'l:r', 'q:r', 't:r', 'n', 'x:r', 'F:r', 'g:r.' .. (closing or ''), 'hn',
        'z')
      kept, held = found[11], found[12]
    end
  else
    number, index = match(S, '^r%.(%d+)%.(%d+)$')
    if not number then return GENERAL end
    name = 'r.' .. number
    found = call('HMGET', K, 's', 'p', 'm:' .. S, 'l:' .. S, 'q:' .. S, 't:' .. S, 'n', 'x:' .. S, 'F:' .. S, 'b:' .. S,
      'g:' .. name, 'm:r', 'l:r', 'q:r', 'x:r', 'hn', 'z')
    kept, held = found[16], found[17]
  end
  local mark, lease, inbox, counter, seen, list = found[3], found[4], found[5], found[7], found[8], found[9]
  if found[1] ~= 'r' or found[2] or lines > WIDE
    or gone and (found[6] or not has(letters, 'r')) then return GENERAL end
  if untaken then
    if lease then return GENERAL end
  else
    local token, told = match(lease or '', '^(%d+) %d+ (%d) ')
    if token ~= ARGV[4] or told ~= '0' then return GENERAL end
  end
  if mark then
    local rev, stamp = match(mark, '^(%d+) g? (%d+)$')
    if rev ~= ARGV[5] or untaken and stamp ~= ARGV[15] then return GENERAL end
  elseif ARGV[5] ~= '0' or not name then
    return GENERAL
  end

  -- The size of the instance, as in prelude.lua.
  local weight, by = tonumber(held) or 0, 0
  if held or #ARGV[6] >= KIB then
    local before = mark and kib(call('HSTRLEN', K, 'r:' .. S)) or 0
    local adds = tonumber(ARGV[16])
    if adds > before and weight - before + adds > tonumber(ARGV[17]) then return GENERAL end
    by = (gone and S ~= 'r' and 0 or kib(#ARGV[6])) - before
  elseif tonumber(ARGV[16]) > tonumber(ARGV[17]) then
    return GENERAL
  end

  -- The inbox.
  local items = inbox and unpacked(inbox)
  if items then
    local wanted = {}
    for at = 19, history - 1 do wanted[ARGV[at]] = true end
    if has(letters, 'q') or #items > WIDE then return GENERAL end
    for _, item in ipairs(items) do
      if not wanted[item[2]] or item[3] == 't' then return GENERAL end
      -- As kib_of_item in prelude.lua.
      if held and find(item[2], 'fork-', 1, true) ~= 1 and call('HSTRLEN', K, 'i:' .. S .. ':' .. item[1]) >= KIB then
        return GENERAL
      end
    end
  end
  if gone and call('EXISTS', KEYS[3]) == 1 then return GENERAL end

  -- The fork that it is a branch of.
  local fork, results, box
  if name then
    fork = fork_of(found[11])
    -- A record that says how it differs must mean this fork, not one of the same name that a failover lost.
    local means = match(ARGV[6], '^%["(%d+)"')
    if not fork or #fork < 10 or means and means ~= fork[10] or fork[CLOSED] == 1 or found[10] or tonumber(index) >= fork[OPEN]
      or gone and (list or not has(letters, 'p')) or not match(found[12] or '', '^%d+ g? %d+$') then return GENERAL end
    if has(letters, 'p') then
      local result = ARGV[rest]
      local place = sub(result, 1, 7) == '{"Done"' and DONE or FAILED
      fork[place] = fork[place] + 1
      by = by - kib(fork[BYTES] or 0)
      fork[BYTES], fork[MOST] = (fork[BYTES] or 0) + #result, fork[MOST] or 0
      by = by + kib(fork[BYTES])
      if fork[MOST] > 0 and fork[BYTES] > fork[MOST] and place == DONE then return GENERAL end
      if fork[TOLD] == 0 and (place == FAILED or fork[DONE] >= fork[NEEDED]) then
        if fork[FAILED] > 0 or fork[OPEN] ~= fork[NEEDED] or fork[OPEN] == fork[TOTAL] then
          if fork[OPEN] > WIDE then return GENERAL end
          if fork[OPEN] > 1 then
            local fields = {}
            for at = 1, fork[OPEN] do fields[at] = 'b:' .. name .. '.' .. (at - 1) end
            results = call('HMGET', K, unpack(fields))
          else
            results = {}
          end
          results[index + 1] = result
        end
        fork[TOLD], fork[TELLINGS] = 1, fork[TELLINGS] + 1
        box = found[14] and unpacked(found[14]) or {}
        local id = 'fork-' .. number .. '-' .. fork[TELLINGS]
        for _, item in ipairs(box) do
          if item[2] == id then return GENERAL end
        end
        if found[15] and has(found[15], '\1' .. id .. '\1') then return GENERAL end
        counter = number_after(counter)
        box[#box + 1] = { counter, id, 'k', '' }
      end
    end
  end

  -- Forks of its own.
  local closed
  if closing then
    closed = fork_of(found[10])
    if not closed or #closed < 10 or closed[CLOSED] == 1 or closed[LIVE] > 0
      or closed[DONE] + closed[FAILED] < closed[OPEN] or closed[TOTAL] > WIDE then return GENERAL end
    if held then by = by - kib(call('HSTRLEN', K, 'f:r.' .. closing)) - kib(closed[BYTES] or 0) end
  end
  local forking = has(letters, 'f') and ARGV[rest]
  local open = forking and tonumber(ARGV[rest + 3])
  if forking and (open < 1 or open > WIDE) then return GENERAL end
  if forking then by = by + kib(#ARGV[rest + 1]) end
  local forks
  if closing or forking then
    forks = {}
    for other in string.gmatch(list or '', '%d+') do
      if other ~= closing then forks[#forks + 1] = other end
    end
    if forking then forks[#forks + 1] = forking end
    if forks[2] then table.sort(forks, function(a, b) return tonumber(a) < tonumber(b) end) end
  end

  -- The end: there may be no fields that this function doesn't know.
  local ends = has(letters, 'e')
  if ends then
    if found[13] or not found[11] or (forks and forks[1] or not forks and list) then return GENERAL end
    local fields = 4 + (items and #items or 0)
    for at = 4, 20 do
      if found[at] then fields = fields + 1 end
    end
    if closed then fields = fields + 1 + closed[DONE] + closed[FAILED] end
    local most = call('HLEN', K)
    -- Its search attributes are unchanged.
    if most ~= fields and (most ~= fields + 1 or call('HEXISTS', K, 'at') == 0) then return GENERAL end
  end

  -- From here on it writes.
  local time = call('TIME')
  local micros = time[1] .. sub('00000' .. time[2], -6)
  local millis = sub(micros, 1, -4)
  local member = INST .. '/' .. S
  local set, del, woken = { 'HSET', K }, { 'HDEL', K }, {}
  local s, d = 2, 2
  if items then
    del[3] = 'q:' .. S
    d = 3
    for _, item in ipairs(items) do
      d = d + 1
      del[d] = 'i:' .. S .. ':' .. item[1]
    end
    if not gone then
      local known = remember(seen or '\1', items)
      if known ~= '\1' then
        set[3], set[4] = 'x:' .. S, known
        s = 4
      end
    end
  end
  if gone and seen then
    d = d + 1
    del[d] = 'x:' .. S
  end
  if not gone or S == 'r' then
    set[s + 1], set[s + 2] = 'r:' .. S, ARGV[6]
    set[s + 3], set[s + 4] = 'm:' .. S, (ARGV[5] + 1) .. ' ' .. ARGV[7] .. ' ' .. micros
    s = s + 4
    if fork and not mark then fork[LIVE] = fork[LIVE] + 1 end
  elseif mark then
    del[d + 1], del[d + 2] = 'r:' .. S, 'm:' .. S
    d = d + 2
    fork[LIVE] = fork[LIVE] - 1
  end
  if by ~= 0 then
    weight = math.max(weight + by, 0)
    if weight > 0 then
      set[s + 1], set[s + 2] = 'z', string.format('%d', weight)
      s = s + 2
    elseif held then
      d = d + 1
      del[d] = 'z'
    end
  end
  if lines > 0 then
    call('RPUSH', KEYS[4], unpack(ARGV, history + 2, history + elements + 1))
    set[s + 1], set[s + 2] = 'hn', trim(K, KEYS[4], (tonumber(kept) or 0) + lines, tonumber(ARGV[10]))
    s = s + 2
  end
  if closed then
    del[d + 1], del[d + 2] = 'f:r.' .. closing, 'g:r.' .. closing
    d = d + 2
    if closed[DONE] + closed[FAILED] > 0 then
      for at = 0, closed[TOTAL] - 1 do del[d + at + 1] = 'b:r.' .. closing .. '.' .. at end
      d = d + closed[TOTAL]
    end
  end
  if forks and forks[1] then
    set[s + 1], set[s + 2] = 'F:' .. S, concat(forks, ' ')
    s = s + 2
  elseif forks and list then
    d = d + 1
    del[d] = 'F:' .. S
  end
  if forking then
    local new = S .. '.' .. forking
    local numbers = {
      tonumber(ARGV[rest + 2]), open, tonumber(ARGV[rest + 4]), 0, 0, 0, 0, 0, 0, micros, 0, tonumber(ARGV[rest + 5]),
    }
    set[s + 1], set[s + 2] = 'f:' .. new, ARGV[rest + 1]
    set[s + 3], set[s + 4] = 'g:' .. new, pack(numbers)
    s = s + 4
    local add = { 'ZADD', READY, 'LT' }
    for at = 1, open do
      woken[at] = new .. '.' .. (at - 1)
      add[2 * at + 2], add[2 * at + 3] = millis, INST .. '/' .. woken[at]
    end
    call(unpack(add))
  end
  if fork then
    if has(letters, 'p') then
      set[s + 1], set[s + 2] = 'b:' .. S, ARGV[rest]
      s = s + 2
    end
    set[s + 1], set[s + 2] = 'g:' .. name, pack(fork)
    s = s + 2
    if box then
      set[s + 1], set[s + 2] = 'q:r', pack(box)
      set[s + 3], set[s + 4] = 'i:r:' .. counter, joined(number, fork, results)
      set[s + 5], set[s + 6] = 'n', counter
      s = s + 6
      woken[1] = 'r'
      call('ZADD', READY, 'LT', millis, INST .. '/r')
      local till, holder = match(found[13] or '', '^%d+ (%d+) %d (%S+) ')
      if till and tonumber(till) > tonumber(millis) then
        call('PUBLISH', ARGV[2] .. ':p:' .. holder, INST .. '/r')
      end
    end
  end
  if ends then
    local status, output, err, place = ARGV[rest], ARGV[rest + 1], ARGV[rest + 2], found[11]
    call('ZREM', KEYS[6], INST)
    call('ZREM', KEYS[7], place)
    call('ZADD', KEYS[8], match(place, '\1(%d+)\1'), INST)
    call('ZADD', KEYS[9], 0, place)
    call('ZADD', KEYS[5], ARGV[9], INST)
    if found[12] then call('PUBLISH', ARGV[2] .. ':p:' .. found[12], INST) end
    set[s + 1], set[s + 2], set[s + 3], set[s + 4] = 's', status, 'end', ARGV[9]
    s = s + 4
    for at = 15, 16 do
      local field, value = at == 15 and 'out' or 'err', at == 15 and output or err
      if value ~= '' then
        set[s + 1], set[s + 2] = field, value
        s = s + 2
      elseif found[at] then
        d = d + 1
        del[d] = field
      end
    end
  end

  -- The lease, and whether the scope continues by itself.
  local released, token = '0', '0'
  if has(letters, 'r') then
    released = '1'
    if lease then
      d = d + 1
      del[d] = 'l:' .. S
    end
  elseif untaken then
    token = number_after(counter)
    set[s + 1], set[s + 2] = 'n', token
    set[s + 3], set[s + 4] = 'l:' .. S, token .. ' ' .. (millis + ARGV[12]) .. ' 0 ' .. ARGV[13] .. ' ' .. ARGV[14]
    s = s + 4
  end
  if not gone and has(ARGV[7], 'g') then
    call('ZADD', READY, millis, member)
  else
    call('ZREM', READY, member)
  end
  if s > 2 then call(unpack(set)) end
  if d > 2 then call(unpack(del)) end
  return released .. ' ' .. token .. ' ' .. concat(woken, ' ')
end
