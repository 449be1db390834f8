-- Writes the changes of a commit, if the fields from which they were computed are unchanged. The caller (plan.rs)
-- decides everything, except for values that branches change together: the numbers of their fork, the size of the
-- instance and the length of its history; and inboxes of other scopes, which anybody may change. Either everything is
-- written or nothing.
--
-- KEYS: 1 instance, 2 ready, 3 history; if there are further facts, 4 its waits, 5 ended; if the instance is new or its
-- status changes, 6 and 7 the listings of its status by time and by workflow, 8 and 9 those of the status after that, 10
-- the counts of starts and ends by span; then the indexes that the facts name; then instances with recorded data, if
-- there is data that expires; last instances with unread entries, if histories are followed.
--
-- ARGV: 1 the counts of what follows (`COUNTS`): fields with a required value, fields that must not exist, fields to
-- read; required values; elements of history; words to write (fields and values); fields to remove; words for the index
-- of ready scopes (times and members); a member that leaves that index; the words about the branch (none or 4); further
-- facts (none or 1). Then the number of new lines of history, and how many are kept.
-- The first field to read is the number of lines, if there are any. The words about a branch are its numbers
-- (`BRANCH`), its parent, the parent's member of the index of ready scopes, and the time in milliseconds.
--
-- The further facts are msgpack, by name. Those in brackets may be missing, and positions of fields are those among all
-- that are read:
-- - instance, namespace
-- - [held: the required lease, if its text isn't known: token, beginning of the marks, position of the lease, position
--   of the marks]
-- - [taken: the lease to take: field, milliseconds, the rest]
-- - [number_at: position of the last number, if one is needed]
-- - [size_at: position of the size, if it matters], [gain: in KiB], [room: KiB that must be free], [most: the limit]
-- - [around: position and number of the forks around the scope's fork that must be open: for each, the marks of the
--   parent and the numbers of the fork that it is a branch of, innermost first]
-- - [outbox_at, listed_at, watcher_at, retention_at: positions]
-- - [fields: the number of fields that are not read, if no others may exist]
-- - [waits: { dirty and consumed: positions in KEYS of the dirty instances and of the consumed events; freed: digests of
--   released events; changes; gone: prefix of the waits to remove or ''; is_over: whether the instance is over;
--   has_event: whether the scope consumes an event }; a change is { w (a wait), c (a value) or u (a wait that is over),
--   field, slots or value }, or { t, the member that notes the offer of an event, the event, which is consumed }]
-- - [stays: the scope's member of the index of ready scopes, if it stays ready]
-- - [ends: the new status: letter, when the instance ended or nil]
-- - [timers: { key: position of their index in KEYS, removed: members, added: pairs of score and member, [earliest: the
--   lowest score] }]
-- - [effects: position of the outbox in KEYS, the effects]
-- - [attributes: { key: position of their index in KEYS, removed and added: beginnings of members }]
-- - [stands_still: whether the instance stands still after this]
-- - [own_inputs: for the scope itself: items of its inbox, pairs of id and input, the scope]
-- - [puts: inputs for other scopes: { scope, id, kind, input }]
-- - [others: what follows: write_others.lua]
-- - [creation: { workflow, version, [retention], [key: position of the index of keys, key], [consumed: position of the
--   consumed events, pairs of generation and digest], started }]
-- - [unread: when the history got entries, if histories are followed], [due: when the first recorded data expires]
--
-- Returns false if nothing was written, otherwise 1; or token and end of the lease that was taken; or 'j' if the fork
-- is complete and the parent was notified, with the number of results that it has to read, their bytes, the number of
-- the input that notifies it, and the lease that was taken, if any. With effects or changed waits it returns a list:
-- that value, the id of the first effect (the others follow it) or '', and the mark of the instance and all its waits,
-- or '' and nothing.

local COUNTS = '>I4I4I4I4I4I4I4BBBI4I8'
-- Position of the numbers of its fork, which its parent's lease and inbox follow if they are read; whether they are;
-- the index of a branch without a record, or -1; the change of the number of branches with a record; when its fork was
-- made, or 0; its result (0 none, 1 done, 2 failed); its bytes; whether it has a parent that can be notified; whether
-- the fork is closed, and stays so.
local BRANCH = '>I4Bi4i4I8BI8BB'
-- The maximum number of values in one command. Lua passes on some thousands at most.
local AT_ONCE = 4000

-- The time of this commit, in seconds and microseconds.
local time
local function now()
  time = time or call('TIME')
  return time
end

local function micros_of(instant) return instant[1] .. sub('00000' .. instant[2], -6) end

-- Whether one of the forks around a branch's fork is closed. A scope that was detached continues in any case.
local function is_closed(found, first, count)
  for at = first, first + 2 * (count - 1), 2 do
    if find(found[at] or '', 'd', 1, true) then return false end
    if not found[at + 1] then return true end
    local _, _, _, _, _, _, _, _, closed = decode(NUMBERS, found[at + 1])
    if closed == 1 then return true end
  end
  return false
end

-- Adds an input to the inbox of another scope, unless it had that before, and notifies its holder.
local function put(K, READY, more, set, input, number, millis)
  local scope, id, kind = input[1], input[2], input[3]
  local parts = call('HMGET', K, 'l:' .. scope, 'q:' .. scope, 'x:' .. scope)
  if parts[3] and find(parts[3], '\1' .. id .. '\1', 1, true) then return end
  local box = parts[2] and unpacked(parts[2]) or {}
  for _, item in ipairs(box) do
    if item[2] == id then return end
  end
  box[#box + 1] = { number, id, kind, '' }
  local s, member = #set, more.instance .. '/' .. scope
  set[s + 1], set[s + 2] = 'q:' .. scope, pack(box)
  set[s + 3], set[s + 4] = 'i:' .. scope .. ':' .. number, input[4]
  if kind == 'o' or not more.stands_still then call('ZADD', READY, 'LT', millis, member) end
  notify(more.namespace, parts[1], member)
end

-- Passes words on, in several commands if they are many.
local function pass_on(command, key, words, first, last)
  for from = first, last, AT_ONCE do
    call(command, key, unpack(words, from, math.min(from + AT_ONCE - 1, last)))
  end
end

-- Updates the index of timers, and notifies listeners of a timer that is due before all others.
local function arm(NS, index, timers)
  pass_on('ZREM', index, timers.removed, 1, #timers.removed)
  if not timers.earliest then return end
  local first = call('ZRANGE', index, 0, 0, 'WITHSCORES')
  if not first[2] or timers.earliest < tonumber(first[2]) then call('PUBLISH', NS .. ':timers', timers.earliest) end
  local add = {}
  for at, timer in ipairs(timers.added) do
    add[2 * at - 1], add[2 * at] = timer[1], timer[2]
  end
  pass_on('ZADD', index, add, 1, #add)
end

-- The position of an instance in the index of ended ones, as in retention.rs.
local function place_of_end(ends, kept)
  local letter, ended = ends[1], ends[2]
  local keep = kept and match(kept, letter .. '(%d+)')
  if keep then ended = format('%.0f', 4e15 + ended + keep) end
  if letter == 'f' then ended = format('%.0f', -1 - ended) end
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
  local micros, key, had = micros_of(now()), creation.key, creation.consumed
  local listed = creation.workflow .. '\1' .. micros .. '\1' .. creation.version .. '\1' .. INST
  call('ZADD', KEYS[8], micros, INST)
  call('ZADD', KEYS[9], 0, listed)
  count(KEYS[10], 's')
  if ends then
    call('ZADD', KEYS[5], place_of_end(ends, creation.retention), INST)
    count(KEYS[10], ends[1], math.max(ends[2] - creation.started, 0))
  end
  if key then call('ZADD', KEYS[key[1]], 0, key[2] .. '\1' .. INST) end
  if had then
    for _, event in ipairs(had[2]) do call('ZADD', KEYS[had[1]], event[1], event[2]) end
  end
  return listed
end

-- Moves an instance to the listings of its new status.
local function relist(KEYS, more, found, listed)
  local INST, ends, began = more.instance, more.ends, match(listed, '\1(%d+)\1')
  call('ZREM', KEYS[6], INST)
  call('ZREM', KEYS[7], listed)
  call('ZADD', KEYS[8], began, INST)
  call('ZADD', KEYS[9], 0, listed)
  if not ends[2] then
    call('ZREM', KEYS[5], INST)
    return
  end
  count(KEYS[10], ends[1], math.max(math.floor((micros_of(now()) - began) / 1000), 0))
  local watcher = found[more.watcher_at]
  call('ZADD', KEYS[5], place_of_end(ends, found[more.retention_at]), INST)
  if watcher then call('PUBLISH', more.namespace .. ':p:' .. watcher, INST) end
end

-- Writes changes of waits. Returns the mark and all waits if the index of events must be updated.
local function wait(KEYS, INST, listed, waits)
  local events, freed, changes, gone, over = KEYS[4], waits.freed, waits.changes, waits.gone, waits.is_over
  if not changes[1] and not freed[1] and gone == '' and not over then
    local mark = call('ZSCORE', KEYS[waits.dirty], INST)
    if not mark then return nil end
    -- The delivery of the consumed event left the index to this commit.
    return format('%.0f', mark), call('HGETALL', events)
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
    if call('ZREM', KEYS[waits.consumed], digest) == 1 and is_there then
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
      local generation = call('ZSCORE', KEYS[waits.consumed], field)
      -- A negative one is that of an offer of an event that isn't kept. The event may be delivered again.
      if generation then call('ZADD', KEYS[waits.consumed], (string.gsub(generation, '^%-', '')), value) end
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
    local mark = waits.has_event and call('ZSCORE', KEYS[waits.dirty], INST)
    if not mark then return nil end
    return format('%.0f', mark), found
  end
  pass_on('HSET', events, set, 1, #set)
  local fields = {}
  for field in pairs(lost) do fields[#fields + 1] = field end
  pass_on('HDEL', events, fields, 1, #fields)
  call('ZADD', KEYS[waits.dirty], micros, INST)
  local answer = {}
  for field, value in pairs(all) do
    answer[#answer + 1] = field
    answer[#answer + 1] = value
  end
  return micros, answer
end

-- Whether the further facts allow the commit.
local function holds(K, more, found, fields)
  local held, around = more.held, more.around
  if held then
    local token, notified = match(found[held[3]] or '', '^(%d+) %d+ (%d) ')
    if token ~= held[1] or notified ~= '0' then return false end
    if held[2] ~= '' and sub(found[held[4]] or '', 1, #held[2]) ~= held[2] then return false end
  end
  if more.room and (tonumber(found[more.size_at]) or 0) + more.room > more.most then return false end
  if around and is_closed(found, around[1], around[2]) then return false end
  if more.listed_at and not found[more.listed_at] then return false end
  if more.fields then
    local there = more.fields
    for field = 1, fields do
      if found[field] then there = there + 1 end
    end
    for _ in string.gmatch(found[more.outbox_at] or '', '%d+') do there = there + 1 end
    if call('HLEN', K) ~= there then return false end
  end
  return true
end

-- Writes the further facts. Returns the answer, the id of the first effect, and the mark and all waits. Adds fields and
-- values to `set`.
local function write_more(KEYS, more, found, set)
  local K, INST, NS, creation, effects, waits = KEYS[1], more.instance, more.namespace, more.creation, more.effects, more.waits
  local answer, first = 1, nil
  local listed = more.listed_at and found[more.listed_at]
  local function put_field(field, value)
    local s = #set
    set[s + 1], set[s + 2] = field, value
  end
  if creation then
    listed = create(KEYS, INST, more.ends, creation)
    put_field('lw', listed)
    if waits then call('HDEL', KEYS[4], 'over') end
  end
  if more.number_at then
    local millis = sub(micros_of(now()), 1, -4)
    local number = math.max((tonumber(found[more.number_at] or 0) or 0) + 1, 16 * millis)
    if effects then
      local outbox = found[more.outbox_at] or ''
      first = format('%.0f', number)
      for _, effect in ipairs(effects[2]) do
        local id = format('%.0f', number)
        outbox = outbox .. ' ' .. id
        put_field('o:' .. id, effect)
        number = number + 1
      end
      put_field('O', outbox)
      call('ZADD', KEYS[effects[1]], 'NX', millis, INST)
    end
    local taken = more.taken
    if taken then
      answer = format('%.0f', number) .. ' ' .. format('%.0f', millis + taken[2])
      put_field(taken[1], answer .. taken[3])
    end
    for _, input in ipairs(more.puts or {}) do
      number = number + 1
      put(K, KEYS[2], more, set, input, format('%.0f', number), millis)
    end
    put_field('n', format('%.0f', number))
  end
  if more.own_inputs then
    local box, inputs, scope = unpack(more.own_inputs, 1, 3)
    for _, input in ipairs(inputs) do
      local number = sub(input[1], 6)
      box[#box + 1] = { number, input[1], 'j', '' }
      put_field('i:' .. scope .. ':' .. number, input[2])
    end
    put_field('q:' .. scope, pack(box))
  end
  if more.ends and not creation then relist(KEYS, more, found, listed) end
  if more.stays then call('ZADD', KEYS[2], more.stays[1], more.stays[2]) end
  if more.timers then arm(NS, KEYS[more.timers.key], more.timers) end
  local index = more.attributes
  if index then
    local key, tail = KEYS[index.key], '\1' .. match(listed, '\1(%d+)\1') .. '\1' .. INST
    for _, head in ipairs(index.removed) do call('ZREM', key, head .. tail) end
    for _, head in ipairs(index.added) do call('ZADD', key, 0, head .. tail) end
  end
  -- KEYS ends with those of unread entries and of recorded data.
  if more.unread then call('ZADD', KEYS[#KEYS], 'NX', more.unread, INST) end
  if more.due then call('ZADD', KEYS[more.unread and #KEYS - 1 or #KEYS], 'LT', more.due, INST) end
  local mark, all
  if waits then mark, all = wait(KEYS, INST, listed, waits) end
  return answer, first, mark, all
end

-- `lines`: the number of lines of the history, if it changes.
local function put_fields(K, lines, ...)
  if lines then
    call('HSET', K, 'hn', lines, ...)
  elseif select('#', ...) > 0 then
    call('HSET', K, ...)
  end
end

local function main(KEYS, ARGV)
  begin_commit()
  time = nil
  local K = KEYS[1]
  local compared, absent, reads, elements, words, gone, ready, leaves, has_branch, has_more, lines, keep =
    decode(COUNTS, ARGV[1])
  local fields = compared + absent + reads
  local found = call('HMGET', K, unpack(ARGV, 2, fields + 1))
  local at = fields + 1
  for place = 1, compared do
    if found[place] ~= ARGV[at + place] then return false end
  end
  for place = compared + 1, compared + absent do
    if found[place] then return false end
  end
  at = at + compared
  local tail = at + elements + words + gone + ready + leaves
  local more = has_more == 1 and unpacked(ARGV[#ARGV]) or nil
  local fork_field, fork, notifications, done, results, bytes, parent_lease, parent_box
  local gain = more and more.gain or 0
  if has_branch == 1 then
    local place, reads_parent, index, live, made, result, size, has_parent, closed = decode(BRANCH, ARGV[tail + 1])
    local grown
    fork_field = ARGV[place + 1]
    fork, grown, notifications, done, results, bytes = counted(found[place], index, live, made, result, size, closed == 1)
    if not fork then return false end
    gain = gain + grown
    if has_parent == 0 then
      notifications = nil
    elseif notifications and reads_parent == 1 then
      parent_lease, parent_box = found[place + 1], found[place + 2]
    elseif notifications then
      local parent = ARGV[tail + 2]
      parent_lease, parent_box = unpack(call('HMGET', K, 'l:' .. parent, 'q:' .. parent))
    end
  end
  if more and not holds(K, more, found, fields) then return false end

  -- Everything was checked, and from here on it writes.
  local answer, set, first, mark, all = 1, nil, nil, nil, nil
  if more then
    set = {}
    answer, first, mark, all = write_more(KEYS, more, found, set)
  end
  if gain ~= 0 then
    weigh(K, more and more.size_at and found[more.size_at] or call('HGET', K, 'z'), gain)
  end
  if elements > 0 then
    pass_on('RPUSH', KEYS[3], ARGV, at + 1, at + elements)
    at = at + elements
  end
  if lines > 0 then
    lines = (tonumber(found[compared + absent + 1]) or 0) + lines
    if lines > keep then lines = trim(K, KEYS[3], lines, keep) end
    lines = format('%d', lines)
  else
    lines = nil
  end
  local from, first_word, last_word = ARGV, at + 1, at + words
  if set and set[1] then
    if #set + words > AT_ONCE then
      pass_on('HSET', K, set, 1, #set)
    else
      for word = first_word, last_word do set[#set + 1] = ARGV[word] end
      from, first_word, last_word = set, 1, #set
    end
  end
  if notifications then
    local parent, member, millis = ARGV[tail + 2], ARGV[tail + 3], ARGV[tail + 4]
    local number, box, field, input = notification(parent, sub(fork_field, #parent + 4), parent_box, notifications, done)
    put_fields(K, lines, fork_field, fork, 'q:' .. parent, box, field, input, unpack(from, first_word, last_word))
    if not (more and more.stands_still) then call('ZADD', KEYS[2], 'LT', millis, member) end
    if parent_lease then notify(namespace_of(K), parent_lease, member) end
    answer = complete(results, bytes, number, answer ~= 1 and answer)
  elseif fork then
    put_fields(K, lines, fork_field, fork, unpack(from, first_word, last_word))
  else
    put_fields(K, lines, unpack(from, first_word, last_word))
  end
  at = at + words
  pass_on('HDEL', K, ARGV, at + 1, at + gone)
  at = at + gone
  for word = at + 1, at + ready, AT_ONCE do
    call('ZADD', KEYS[2], 'LT', unpack(ARGV, word, math.min(word + AT_ONCE - 1, at + ready)))
  end
  if leaves == 1 then call('ZREM', KEYS[2], ARGV[tail]) end
  if first or mark then return { answer, first or '', mark or '', all or {} } end
  return answer
end
