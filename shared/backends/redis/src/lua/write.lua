-- Writes the changes of a commit, if the fields from which they were computed are unchanged. The caller (plan.rs)
-- decides everything, except for values that branches change together: the numbers of their fork, the size of the
-- instance and the length of its history; and inboxes of other scopes, which anybody may change. Either everything is
-- written or nothing.
--
-- KEYS: 1 instance, 2 ready, 3 history, 4 its waits, 5 ended; if the instance is new or its status changes, 6 and 7 the
-- listings of its status by time and by workflow, 8 and 9 those of the status after that, 10 the counts of starts and
-- ends by span; then the indexes that the facts name; then instances with recorded data, if there is data that expires;
-- last instances with unread entries, if histories are followed.
-- ARGV: 1 the facts below, as msgpack; then fields to read; the required values of the first of them ('' for none);
-- elements of history; fields and values to write; fields to remove; scopes that become ready.
--
-- Facts (those in brackets may be nil):
-- - numbers of fields to read, of compared fields, of lines of history, of elements, of lines to keep, of words to
--   write, of words to remove
-- - [the scope's member of the index of ready scopes, if it leaves the index]
-- - [more: {
--     instance, namespace,
--     [the required lease, if its text isn't known: { token, beginning of the marks }],
--     [the lease to take: { field, milliseconds, the rest }],
--     whether a number is needed,
--     [KiB that the instance gains, if its size matters], [KiB that must be free], the limit in KiB,
--     [waits: { positions in KEYS of the dirty instances and of the consumed events, digests of released events,
--       changes, prefix of the waits to remove or '', whether the instance is over, whether the scope consumes an event
--       }; a change is { w (a wait), c (a value) or u (a wait that is over), field, slots or value }, or { t, the
--       member that notes the offer of an event, the event, which is consumed }],
--     [the scope's member of the index of ready scopes, if it stays ready],
--     [its fork: { name, number, index or -1 if the branch has a record, stamp or '', change of the number of branches
--       with a record, letter of the result (d done, f failed, '' none), its bytes, whether the parent is read too,
--       [the parent, if it can be notified], whether the fork is closed }],
--     [the new status: { letter, [when the instance ended], [number of fields that are not read, if no others may
--       exist] }],
--     [timers: { position of their index in KEYS, members to remove, pairs of score and member to add,
--       [lowest score] }],
--     [effects: { position of the outbox in KEYS, the effects }],
--     [attributes: { position of their index in KEYS, beginnings of members to remove, of those to add }],
--     [rare: {
--       number of forks around the scope's fork that must be open,
--       whether the instance stands still after this,
--       [inputs for the scope itself: { items of its inbox, pairs of id and input, the scope }],
--       [inputs for other scopes: { scope, id, kind, input }],
--       [what follows: write_others.lua]
--     }],
--     [creation: { workflow, version, retention, [{ position of the index of keys, key }],
--       [{ position of the consumed events, pairs of generation and digest }], when it was started }]
--   }]
-- - [{ the instance, [time, if histories are followed], [when the first recorded data expires] }]
--
-- Fields that are read and not compared, if a fact needs them: lines of history; the lease and the marks; the last
-- number; the size; the numbers of the fork, and its parent's lease, inbox and consumed ids; the marks of each parent
-- and the numbers of the next fork around it; with effects or if fields are counted, the ids in the outbox; with
-- attributes, changes of waits or another status, the position in the listing; at an end, the watcher, the retention,
-- and other fields that may exist.
--
-- Returns false if nothing was written, otherwise 1; or token and end of the lease that was taken; or 'j' if the fork
-- is complete and the parent was notified, with the number of results that it has to read, their bytes, the number of
-- the input that notifies it, and the lease that was taken, if any. With effects or changed waits it returns a list:
-- that value, the id of the first effect (the others follow it) or '', and the mark of the instance and all its waits,
-- or '' and nothing.

-- Libraries, which are not available yet when this is loaded.
local call, match, find, sub, pack, unpacked
-- The maximum number of history elements removed with one commit.
local TRIMMED = 1000
-- The maximum number of values in one command. Lua passes on some thousands at most.
local AT_ONCE = 4000
-- The positions of a fork's numbers.
local TOTAL, OPEN, NEEDED, NOTIFIED, CLOSED, NOTIFICATIONS, DONE, FAILED, LIVE = 1, 2, 3, 4, 5, 6, 7, 8, 9
local STAMP, BYTES, MOST = 10, 11, 12

-- The time of this commit, in seconds and microseconds.
local time
local function now()
  time = time or call('TIME')
  return time
end

local function micros_of(instant) return instant[1] .. sub('00000' .. instant[2], -6) end

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

-- Counts a result. Returns the numbers of the fork, whether its parent is notified now, and by how many KiB the results
-- grow; nil if the fork isn't as expected.
local function counted(branch, text)
  local fork = text and unpacked(text)
  if not fork or #fork < 10 or branch[4] ~= '' and fork[STAMP] ~= branch[4] then return nil end
  if branch[3] >= fork[OPEN] then return nil end
  if fork[CLOSED] == 1 and not branch[10] then return nil end
  fork[LIVE] = fork[LIVE] + branch[5]
  local letter, size = branch[6], branch[7]
  if letter == '' then return fork, false, 0 end
  local place = letter == 'd' and DONE or FAILED
  local before = fork[BYTES] or 0
  fork[place] = fork[place] + 1
  fork[BYTES], fork[MOST] = before + size, fork[MOST] or 0
  if fork[MOST] > 0 and fork[BYTES] > fork[MOST] and letter == 'd' then return nil end
  local notifies = fork[NOTIFIED] == 0 and (letter == 'f' or fork[DONE] >= fork[NEEDED])
  if notifies then
    fork[NOTIFIED], fork[NOTIFICATIONS] = 1, fork[NOTIFICATIONS] + 1
  end
  return fork, notifies, math.floor(fork[BYTES] / 1024) - math.floor(before / 1024)
end

-- Whether one of the forks around a branch's fork is closed. From `place` on, `found` has the marks of each parent and
-- the numbers of the fork that it is a branch of, innermost first. A scope that was detached continues in any case.
local function is_closed(found, place, count)
  for at = place + 1, place + 2 * count, 2 do
    if find(found[at] or '', 'd', 1, true) then return false end
    local fork = found[at + 1] and unpacked(found[at + 1])
    if not fork or fork[CLOSED] == 1 then return true end
  end
  return false
end

-- Adds an input to the inbox of another scope, unless it had that before, and notifies its holder. `parts`: its lease,
-- inbox and consumed ids.
local function add_input(KEYS, NS, INST, set, scope, parts, number, id, kind, input, millis, is_ready)
  if parts[3] and find(parts[3], '\1' .. id .. '\1', 1, true) then return false end
  local box = parts[2] and unpacked(parts[2]) or {}
  for _, item in ipairs(box) do
    if item[2] == id then return false end
  end
  box[#box + 1] = { number, id, kind, '' }
  local s, member = #set, INST .. '/' .. scope
  set[s + 1], set[s + 2] = 'q:' .. scope, pack(box)
  set[s + 3], set[s + 4] = 'i:' .. scope .. ':' .. number, input
  if is_ready then call('ZADD', KEYS[2], 'LT', millis, member) end
  local till, holder = match(parts[1] or '', '^%d+ (%d+) %d (%S+) ')
  if till and tonumber(till) > tonumber(millis) then call('PUBLISH', NS .. ':p:' .. holder, member) end
  return true
end

-- Passes words on, in several commands if they are many.
local function pass_on(command, key, words, first, last)
  for from = first, last, AT_ONCE do
    call(command, key, unpack(words, from, math.min(from + AT_ONCE - 1, last)))
  end
end

-- The number of results that the parent of a complete fork reads: none after a batch that isn't the last one.
local function to_read(fork)
  if fork[FAILED] == 0 and fork[OPEN] == fork[NEEDED] and fork[OPEN] < fork[TOTAL] then return 0 end
  return fork[DONE] + fork[FAILED]
end

-- Updates the index of timers, and notifies listeners of a timer that is due before all others.
local function arm(NS, index, removed, added, earliest)
  pass_on('ZREM', index, removed, 1, #removed)
  if not earliest then return end
  local first = call('ZRANGE', index, 0, 0, 'WITHSCORES')
  if not first[2] or earliest < tonumber(first[2]) then call('PUBLISH', NS .. ':timers', earliest) end
  local add = {}
  for at = 1, #added do
    add[2 * at - 1], add[2 * at] = added[at][1], added[at][2]
  end
  pass_on('ZADD', index, add, 1, #add)
end

-- The position of an instance in the index of ended ones, as in retention.rs.
local function place_of_end(ends, kept)
  local letter, ended = ends[1], ends[2]
  local keep = kept and match(kept, letter .. '(%d+)')
  if keep then ended = string.format('%.0f', 4e15 + ended + keep) end
  if letter == 'f' then ended = string.format('%.0f', -1 - ended) end
  return ended
end

-- Counts a start ('s') or an end (the letter of the status) in this minute and in this quarter of an hour. A span takes
-- the place of an older one: trend.rs has their numbers. `millis`: the time from start to end.
local function count(key, letter, millis)
  local seconds = tonumber(now()[1])
  local minute, quarter = math.floor(seconds / 60), math.floor(seconds / 900)
  local minutes, quarters = 'm' .. minute % 64, 'q' .. quarter % 100
  local found = call('HMGET', key, minutes, quarters)
  local function counted_in(text, number)
    local tally = text and unpacked(text)
    if not tally or tally[1] ~= number then tally = { number, 0, 0, 0, 0, 0, 0, 0 } end
    local place = find('scfxt', letter, 1, true) + 1
    tally[place] = tally[place] + 1
    if letter == 'c' then tally[7], tally[8] = tally[7] + millis, math.max(tally[8], millis) end
    return pack(tally), tally
  end
  local of_minute, tally = counted_in(found[1], minute)
  call('HSET', key, minutes, of_minute, quarters, (counted_in(found[2], quarter)))
  -- The first of a minute. Nothing is left when all counts are too old.
  if tally[2] + tally[3] + tally[4] + tally[5] + tally[6] == 1 then call('EXPIRE', key, 90000) end
end

-- Lists a new instance, and notes the events that it has consumed. Returns its place in the listings.
local function create(KEYS, INST, ends, creation)
  local workflow, version, kept, key, had, started = unpack(creation, 1, 6)
  local micros = micros_of(now())
  local listed = workflow .. '\1' .. micros .. '\1' .. version .. '\1' .. INST
  call('ZADD', KEYS[8], micros, INST)
  call('ZADD', KEYS[9], 0, listed)
  count(KEYS[10], 's')
  if ends then
    call('ZADD', KEYS[5], place_of_end(ends, kept), INST)
    count(KEYS[10], ends[1], math.max(ends[2] - started, 0))
  end
  if key then call('ZADD', KEYS[key[1]], 0, key[2] .. '\1' .. INST) end
  if had then
    for _, event in ipairs(had[2]) do call('ZADD', KEYS[had[1]], event[1], event[2]) end
  end
  return listed
end

-- Writes changes of waits. Returns the mark and all waits if the index of events must be updated.
local function wait(KEYS, INST, listed, waits)
  local events, freed, changes, gone, over = KEYS[4], waits[3], waits[4], waits[5], waits[6]
  if not changes[1] and not freed[1] and gone == '' and not over then
    local mark = call('ZSCORE', KEYS[waits[1]], INST)
    if not mark then return nil end
    -- The delivery of the consumed event left the index to this commit.
    return string.format('%.0f', mark), call('HGETALL', events)
  end
  local found = call('HGETALL', events)
  local is_there = found[1] ~= nil
  if not is_there and not changes[1] and not freed[1] then return nil end
  local all, set, lost = {}, {}, {}
  for at = 1, #found, 2 do all[found[at]] = found[at + 1] end
  local function put(field, value)
    all[field], lost[field] = value, nil
    set[#set + 1] = field
    set[#set + 1] = value
  end
  local micros, is_dirty, begins = micros_of(now()), false, false
  for _, digest in ipairs(freed) do
    if call('ZREM', KEYS[waits[2]], digest) == 1 and is_there then
      put('F', micros)
      is_dirty = true
    end
  end
  for _, change in ipairs(changes) do
    local kind, field, value = change[1], change[2], change[3]
    if kind == 'u' then
      if all[field] then
        all[field], lost[field] = nil, true
        is_dirty = true
      end
    elseif kind == 't' then
      local generation = call('ZSCORE', KEYS[waits[2]], field)
      -- A negative one is that of an offer of an event that isn't kept. The event may be delivered again.
      if generation then call('ZADD', KEYS[waits[2]], (string.gsub(generation, '^%-', '')), value) end
    elseif kind == 'w' then
      put(field, micros .. '\n' .. value)
      begins = true
    elseif not all[field] then
      put(field, value)
      begins = true
    end
  end
  if begins then
    if not all.W then put('W', match(listed, '^(.-)\1') or '') end
    is_there, is_dirty = true, true
  end
  if over and is_there then
    put('over', '1')
    is_dirty = true
  end
  if gone ~= '' and is_there then
    for field in pairs(all) do
      if sub(field, 1, #gone) == gone then
        all[field], lost[field] = nil, true
        is_dirty = true
      end
    end
  end
  if not is_dirty then
    local mark = waits[7] and call('ZSCORE', KEYS[waits[1]], INST)
    if not mark then return nil end
    return string.format('%.0f', mark), found
  end
  pass_on('HSET', events, set, 1, #set)
  local fields = {}
  for field in pairs(lost) do fields[#fields + 1] = field end
  pass_on('HDEL', events, fields, 1, #fields)
  call('ZADD', KEYS[waits[1]], micros, INST)
  local answer = {}
  for field, value in pairs(all) do
    answer[#answer + 1] = field
    answer[#answer + 1] = value
  end
  return micros, answer
end

-- The parts that only some commits need. Returns the answer (false if nothing may be written), fields and values to
-- write, the id of the first effect, and the mark and all waits.
local function extra(KEYS, ARGV, found, more, place, at, fields, elements, words, gone)
  local K = KEYS[1]
  local INST, NS, held, lease, numbered, gain, room, most, waits, stays = unpack(more, 1, 10)
  local branch, ends, timers, effects, index, rare, creation = unpack(more, 11, 17)
  if held then
    local token, notified = match(found[place + 1] or '', '^(%d+) %d+ (%d) ')
    if token ~= held[1] or notified ~= '0' then return false end
    place = place + 1
    if held[2] ~= '' then
      place = place + 1
      if sub(found[place] or '', 1, #held[2]) ~= held[2] then return false end
    end
  end
  local number, weight
  if numbered then
    place = place + 1
    number = found[place]
  end
  if gain then
    place = place + 1
    weight = tonumber(found[place]) or 0
    if room and weight + room > most then return false end
  end
  local fork, notifies, parent
  if branch then
    place = place + 1
    local grown
    fork, notifies, grown = counted(branch, found[place])
    if not fork then return false end
    if gain then gain = gain + grown end
    if branch[8] then
      parent = { found[place + 1], found[place + 2], found[place + 3] }
      place = place + 3
    end
    notifies = notifies and branch[9]
    if notifies then
      parent = parent or call('HMGET', K, 'l:' .. branch[9], 'q:' .. branch[9], 'x:' .. branch[9])
    end
  end
  local around, stands_still, own, puts = 0, false, nil, nil
  if rare then
    around, stands_still, own, puts = unpack(rare, 1, 4)
    if is_closed(found, place, around) then return false end
    place = place + 2 * around
  end
  local outbox, listed
  if effects or ends and ends[3] then
    place = place + 1
    outbox = found[place] or ''
  end
  if not creation and (index or ends or waits and waits[4][1]) then
    place = place + 1
    listed = found[place]
    if not listed then return false end
  end
  if ends and ends[3] then
    local there = ends[3]
    for field = 1, fields do
      if found[field] then there = there + 1 end
    end
    for _ in string.gmatch(outbox, '%d+') do there = there + 1 end
    if call('HLEN', K) ~= there then return false end
  end

  -- Everything was checked, and from here on it writes.
  local set, s, answer, first = {}, 0, 1, nil
  if creation then
    listed = create(KEYS, INST, ends, creation)
    set[1], set[2] = 'lw', listed
    s = 2
    if waits then call('HDEL', KEYS[4], 'over') end
  end
  local wakes = at + elements + words + gone + 1
  local millis
  if lease or stays or notifies or effects or own or puts or ARGV[wakes] then
    millis = sub(micros_of(now()), 1, -4)
    if numbered then
      number = math.max((tonumber(number or 0) or 0) + 1, 16 * millis)
      if effects then
        first, number = number, number + #effects[2]
      end
      number = string.format('%.0f', number)
    end
  end
  if lease then
    answer = number .. ' ' .. string.format('%.0f', millis + lease[2])
    set[1], set[2], set[3], set[4] = 'n', number, lease[1], answer .. lease[3]
    s = 4
  end
  if effects then
    for place, effect in ipairs(effects[2]) do
      local id = string.format('%.0f', first + place - 1)
      outbox = outbox .. ' ' .. id
      set[s + 1], set[s + 2] = 'o:' .. id, effect
      s = s + 2
    end
    set[s + 1], set[s + 2], set[s + 3], set[s + 4] = 'O', outbox, 'n', number
    s = s + 4
    call('ZADD', KEYS[effects[1]], 'NX', millis, INST)
    first = string.format('%.0f', first)
  end
  if fork then
    set[s + 1], set[s + 2] = 'g:' .. branch[1], pack(fork)
    s = s + 2
  end
  if notifies then
    local id = 'fork-' .. branch[2] .. '-' .. fork[NOTIFICATIONS]
    local input = '{"Joined":{"fork":' .. branch[2] .. ',"results":[],"done":' .. fork[DONE] .. '}}'
    if add_input(KEYS, NS, INST, set, branch[9], parent, number, id, 'j', input, millis, not stands_still) then
      local taken = lease and ' ' .. answer or ''
      answer = 'j ' .. to_read(fork) .. ' ' .. string.format('%.0f', fork[BYTES]) .. ' ' .. number .. taken
    end
    s = #set + 2
    set[s - 1], set[s] = 'n', number
  end
  if own then
    local box = own[1]
    for _, input in ipairs(own[2]) do
      number = string.format('%.0f', number + 1)
      box[#box + 1] = { number, input[1], 'j', '' }
      set[s + 1], set[s + 2] = 'i:' .. own[3] .. ':' .. number, input[2]
      s = s + 2
    end
    set[s + 1], set[s + 2], set[s + 3], set[s + 4] = 'q:' .. own[3], pack(box), 'n', number
    s = s + 4
  end
  if puts then
    for _, put in ipairs(puts) do
      number = string.format('%.0f', number + 1)
      local parts = call('HMGET', K, 'l:' .. put[1], 'q:' .. put[1], 'x:' .. put[1])
      local is_ready = put[3] == 'o' or not stands_still
      add_input(KEYS, NS, INST, set, put[1], parts, number, put[2], put[3], put[4], millis, is_ready)
    end
    s = #set + 2
    set[s - 1], set[s] = 'n', number
  end
  if gain and gain ~= 0 then
    weight = math.max(weight + gain, 0)
    if weight > 0 then
      set[s + 1], set[s + 2] = 'z', string.format('%d', weight)
    else
      call('HDEL', K, 'z')
    end
  end
  if ends and not creation then
    call('ZREM', KEYS[6], INST)
    call('ZREM', KEYS[7], listed)
    call('ZADD', KEYS[8], match(listed, '\1(%d+)\1'), INST)
    call('ZADD', KEYS[9], 0, listed)
    if ends[2] then
      local began = match(listed, '\1(%d+)\1')
      count(KEYS[10], ends[1], math.max(math.floor((micros_of(now()) - began) / 1000), 0))
      local watcher, kept = found[place + 1], found[place + 2]
      call('ZADD', KEYS[5], place_of_end(ends, kept), INST)
      if watcher then call('PUBLISH', NS .. ':p:' .. watcher, INST) end
    else
      call('ZREM', KEYS[5], INST)
    end
  end
  if ARGV[wakes] then
    for first = wakes, #ARGV, AT_ONCE / 2 do
      local add, size = { 'ZADD', KEYS[2], 'LT' }, 3
      for woken = first, math.min(first + AT_ONCE / 2 - 1, #ARGV) do
        add[size + 1], add[size + 2] = millis, ARGV[woken]
        size = size + 2
      end
      call(unpack(add))
    end
  end
  if stays then call('ZADD', KEYS[2], millis, stays) end
  if timers then arm(NS, KEYS[timers[1]], timers[2], timers[3], timers[4]) end
  if index then
    local key, tail = KEYS[index[1]], '\1' .. match(listed, '\1(%d+)\1') .. '\1' .. INST
    for _, head in ipairs(index[2]) do call('ZREM', key, head .. tail) end
    for _, head in ipairs(index[3]) do call('ZADD', key, 0, head .. tail) end
  end
  local mark, all
  if waits then mark, all = wait(KEYS, INST, listed, waits) end
  return answer, set, first, mark, all
end

local function main(KEYS, ARGV)
  if not call then
    call, match, find, sub = redis.call, string.match, string.find, string.sub
    pack, unpacked = cmsgpack.pack, cmsgpack.unpack
  end
  time = nil
  local K = KEYS[1]
  local fields, compared, lines, elements, keep, words, gone, leaves, more, noted = unpack(unpacked(ARGV[1]), 1, 10)
  local found = call('HMGET', K, unpack(ARGV, 2, fields + 1))
  local at = fields + 1
  for place = 1, compared do
    if (found[place] or '') ~= ARGV[at + place] then return false end
  end
  at = at + compared
  local answer, set, first, mark, all = 1, nil, nil, nil, nil
  if more then
    local place = lines > 0 and compared + 1 or compared
    answer, set, first, mark, all = extra(KEYS, ARGV, found, more, place, at, fields, elements, words, gone)
    if not answer then return false end
  end
  if lines > 0 then
    pass_on('RPUSH', KEYS[3], ARGV, at + 1, at + elements)
    lines = (tonumber(found[compared + 1]) or 0) + lines
    if lines > keep then lines = trim(K, KEYS[3], lines, keep) end
    if noted then
      local inst, at_unread, due = unpack(noted, 1, 3)
      if at_unread then call('ZADD', KEYS[#KEYS], 'NX', at_unread, inst) end
      if due then call('ZADD', KEYS[at_unread and #KEYS - 1 or #KEYS], 'LT', due, inst) end
    end
    at = at + elements
  end
  if set and #set > AT_ONCE then
    pass_on('HSET', K, set, 1, #set)
    set = nil
  end
  if set and set[1] then
    local all, size = { 'HSET', K, unpack(ARGV, at + 1, at + words) }, words + 2
    for place = 1, #set do all[size + place] = set[place] end
    if lines > 0 then
      size = #all
      all[size + 1], all[size + 2] = 'hn', lines
    end
    call(unpack(all))
  elseif lines > 0 then
    call('HSET', K, 'hn', lines, unpack(ARGV, at + 1, at + words))
  elseif words > 0 then
    call('HSET', K, unpack(ARGV, at + 1, at + words))
  end
  at = at + words
  pass_on('HDEL', K, ARGV, at + 1, at + gone)
  if leaves then call('ZREM', KEYS[2], leaves) end
  if first or mark then return { answer, first or '', mark or '', all or {} } end
  return answer
end
