-- The beginning of every script about an instance: the instance's hash, its scopes' inboxes and
-- leases, and the index of scopes that should run.
--
-- KEYS, as far as a script needs them (keys.rs): 1 instance, 2 ready, 3 timers, 4 dirty, 5 its waits, 6 events that it
-- consumed, 7 outbox, 8 ended, 9 history; then the script's own.
-- ARGV: 1 instance, 2 namespace, 3 the scope that the script is about (may be ''); then the script's own.
--
-- Fields of the instance's hash: s status, p suspended, n counter, h header, r:<scope> record, m:<scope> marks ("rev
-- flags stamp": e ended, d detached, g continues without an input; the stamp is the time when it was written),
-- l:<scope> lease, q:<scope> inbox, i:<scope>:<n> an input, x:<scope> ids of consumed inputs, t:<scope> armed timers,
-- f:<fork> origin, g:<fork> counters, b:<fork>.<index> a result, at search attributes (plan.rs), hn number of kept
-- lines of history, hd number of dropped lines, le number of lines that were read (following.rs), a:<scope> attempts
-- that may have crashed a worker (attempts.lua), om marks of actions that are carried out once (operate.lua), F:<scope>
-- its forks, kp its retention (retention.rs), O outbox, o:<n> an effect, k children, nk the Redis key of its business
-- key, z its size (KiB).

local KEYS, ARGV
local K, READY, TIMERS, DIRTY, EVENTS, HAD
local INST, NS, SCOPE
-- Milliseconds, as a number and as text; microseconds as text only, since Lua truncates a number of 16 digits when it
-- makes text of it.
local NOW, MILLIS, MICROS
local STATUS, SUSPENDED
-- The scope whose holder runs this script. The holder needs no message about it.
local ME
-- Scopes that became runnable.
local woken
local is_dirty
-- Fields of the instance's hash as this script knows them: text, or false if there is none. The changed ones are
-- written together at the end.
local known, changed
-- Changes to the index of ready scopes: the time since when a scope is ready, or false.
local ready
local marks, leases, boxes, forks
-- Forks whose numbers changed.
local counted
-- Armed timers, and whether a listener was notified.
local armed_now, notified_timers
-- Whether the instance has waits; nil if that was not checked.
local waiting
local call

local function fetch(fields)
  for first = 1, #fields, 1000 do
    local last = math.min(first + 999, #fields)
    local found = call('HMGET', K, unpack(fields, first, last))
    for at = first, last do
      local field = fields[at]
      if known[field] == nil then known[field] = found[at - first + 1] end
    end
  end
end

local function read(field)
  local value = known[field]
  if value == nil then
    value = call('HGET', K, field)
    known[field] = value
  end
  return value
end

local function write(field, value)
  known[field] = value
  changed[field] = true
end

local function erase(field)
  if known[field] ~= false then
    known[field] = false
    changed[field] = true
  end
end

-- A number for a token, an input or an effect. It grows with time, so that no number is used again if the instance is
-- removed and its id is used again, or if a server without the last writes takes over. A process may still use an
-- earlier number.
local function next_number()
  local last = tonumber(read('n') or 0)
  local number = string.format('%.0f', math.max(last + 1, 16 * NOW))
  write('n', number)
  return number
end

-- A command that begins with this many words, followed by any number of pairs or single words.
local function batched(words, head)
  local size = #words
  if size <= 1000 then
    if size > head then call(unpack(words)) end
    return
  end
  for first = head + 1, size, 1000 do
    local some = { unpack(words, 1, head) }
    for at = first, math.min(first + 999, size) do some[#some + 1] = words[at] end
    call(unpack(some))
  end
end

-- Writes the changes. Called before the hash is read directly, and at the end.
local function flush()
  for name in pairs(counted) do
    local fork = forks[name]
    if fork then
      write('g:' .. name, struct.pack(NUMBERS, fork.total, fork.open, fork.needed, fork.notification_count, fork.done,
        fork.failed, fork.live, fork.notified, fork.closed, fork.stamp, fork.bytes, fork.most))
    end
  end
  counted = {}
  local set, gone = { 'HSET', K }, { 'HDEL', K }
  for field in pairs(changed) do
    local value = known[field]
    if value then
      set[#set + 1] = field
      set[#set + 1] = value
    else
      gone[#gone + 1] = field
    end
  end
  changed = {}
  batched(set, 2)
  batched(gone, 2)
  local add, remove = { 'ZADD', READY, 'LT' }, { 'ZREM', READY }
  for member, since in pairs(ready) do
    if since then
      add[#add + 1] = since
      add[#add + 1] = member
    else
      remove[#remove + 1] = member
    end
  end
  ready = {}
  batched(add, 3)
  batched(remove, 2)
end

local function fields_of()
  flush()
  return call('HKEYS', K)
end

local function read_marks(text)
  if not text then return false end
  local rev, flags, stamp = string.match(text, '^(%d+) (%a*) (%d+)$')
  if not rev then error('DAMAGED marks of a scope of ' .. INST) end
  if flags == '' then return { rev = rev, stamp = stamp } end
  return {
    rev = rev,
    stamp = stamp,
    ended = string.find(flags, 'e', 1, true) and true,
    detached = string.find(flags, 'd', 1, true) and true,
    goes = string.find(flags, 'g', 1, true) and true,
  }
end

local function read_lease(text)
  if not text then return false end
  local token, till, notified, holder, attempt = string.match(text, '^(%d+) (%d+) (%d) (%S+) (%d+)$')
  if not token then error('DAMAGED lease of a scope of ' .. INST) end
  return { token = token, till = tonumber(till), notified = notified, holder = holder, attempt = attempt }
end

local function read_box(text)
  return text and cmsgpack.unpack(text) or {}
end

-- Reads the scope, and the other fields of the hash that the script needs, in one command.
local function begin(...)
  local time = call('TIME')
  MICROS = time[1] .. string.sub('00000' .. time[2], -6)
  MILLIS = string.sub(MICROS, 1, -4)
  NOW = tonumber(MILLIS)
  fetch({ 's', 'p', 'm:' .. SCOPE, 'l:' .. SCOPE, 'q:' .. SCOPE, ... })
  STATUS, SUSPENDED = known.s, known.p and true
end

-- Runs a script: its keys and arguments, its body, and its end.
local function run(keys, argv, main)
  KEYS, ARGV, call = keys, argv, redis.call
  K, READY, TIMERS, DIRTY, EVENTS, HAD = keys[1], keys[2], keys[3], keys[4], keys[5], keys[6]
  INST, NS, SCOPE = argv[1], argv[2], argv[3]
  ME, woken, is_dirty, waiting = nil, {}, 0, nil
  armed_now, notified_timers = 0, false
  known, changed, ready = {}, {}, {}
  marks, leases, boxes, forks, counted = {}, {}, {}, {}, {}
  local answer = main()
  flush()
  return answer
end

-- Returns the parsed value of a field. It is parsed only once.
local function parsed(found, kind, parse, scope)
  local value = found[scope]
  if value == nil then
    value = parse(read(kind .. scope))
    found[scope] = value
  end
  return value
end

-- The marks of a scope; false if it has no record.
local function marks_of(scope) return parsed(marks, 'm:', read_marks, scope) end
local function lease_of(scope) return parsed(leases, 'l:', read_lease, scope) end

local function put_lease(scope, lease)
  leases[scope] = lease
  write('l:' .. scope, lease.token .. ' ' .. lease.till .. ' ' .. lease.notified .. ' '
    .. lease.holder .. ' ' .. lease.attempt)
end

local function drop_lease(scope)
  leases[scope] = false
  erase('l:' .. scope)
end

-- Items { n, id, kind, token of the lease that it was handed to }. Kinds: o an operator's input, t a timer or wake-up,
-- e an event, k others.
local function box_of(scope) return parsed(boxes, 'q:', read_box, scope) end

local function put_box(scope)
  local box = boxes[scope]
  if #box == 0 then
    erase('q:' .. scope)
  else
    write('q:' .. scope, cmsgpack.pack(box))
  end
end

local function read_fork(text)
  if not text then return false end
  local fork = {}
  fork.total, fork.open, fork.needed, fork.notification_count, fork.done, fork.failed, fork.live, fork.notified,
    fork.closed, fork.stamp, fork.bytes, fork.most = struct.unpack(NUMBERS, text)
  return fork
end

-- When a fork was made, as text.
local function stamp_of(fork) return string.format('%.0f', fork.stamp) end

-- The numbers of a fork; `name` is <parent>.<number>.
local function fork_of(name) return parsed(forks, 'g:', read_fork, name) end

local function put_fork(name, fork)
  forks[name] = fork
  counted[name] = true
end

-- The fork, parent and index in a scope's name: r.3.1 is branch 1 of fork r.3 of r.
local function branch_of(scope)
  local name, index = string.match(scope, '^(.+)%.(%d+)$')
  if not name then return nil end
  local parent = string.match(name, '^(.+)%.%d+$')
  if not parent then return nil end
  return name, parent, tonumber(index)
end

-- The fields of the scope's fork and parent.
local function related_fields()
  local name, parent = branch_of(SCOPE)
  if name then return 'g:' .. name, 'm:' .. parent end
end

local function is_paused() return SUSPENDED or STATUS == 'f' end
local function over() return STATUS ~= 'r' and STATUS ~= 'f' end

-- Whether this is a branch that may run but has no record yet.
local function unborn(scope)
  if marks_of(scope) then return false end
  local name, _, index = branch_of(scope)
  if not name then return false end
  local fork = fork_of(name)
  return fork and fork.closed == 0 and index < fork.open
    and not read('b:' .. scope)
end

local function is_there(scope)
  local mark = marks_of(scope)
  if mark then return not mark.ended end
  return unborn(scope)
end

-- Whether a fork that encloses the scope is closed or the instance is over. A detached scope continues nevertheless.
local function closed(scope)
  while true do
    local mark = marks_of(scope)
    if mark and mark.detached then return false end
    local name, parent = branch_of(scope)
    if not name then return over() end
    local fork = fork_of(name)
    if not fork or fork.closed == 1 then return true end
    scope = parent
  end
end

local function has_operator(scope)
  for _, item in ipairs(box_of(scope)) do
    if item[3] == 'o' then return true end
  end
  return false
end

local function has_work(scope)
  if is_paused() then return has_operator(scope) and is_there(scope) end
  local mark = marks_of(scope)
  if not mark then return unborn(scope) end
  if mark.ended then return false end
  if #box_of(scope) > 0 then return true end
  return mark.goes and not closed(scope)
end

-- Updates whether a scope has something to do; if so, it is in the index from now on. A scope with a valid lease is
-- there too, and readers of the index skip it. Notifies the holder.
local function refresh(scope)
  local member = INST .. '/' .. scope
  local lease = lease_of(scope)
  local work = has_work(scope)
  ready[member] = work and MILLIS or false
  if lease and scope ~= ME and lease.till > NOW then
    call('PUBLISH', NS .. ':p:' .. lease.holder, member)
  end
  return work
end

local function wake(scope)
  refresh(scope)
  if woken[#woken] ~= scope then woken[#woken + 1] = scope end
end

local function short(id)
  return #id > 40 and redis.sha1hex(id) or id
end

-- Whether an input is waiting or was consumed.
local function knows(scope, id)
  for _, item in ipairs(box_of(scope)) do
    if item[2] == id then return true end
  end
  local seen = read('x:' .. scope)
  return seen and string.find(seen, '\1' .. short(id) .. '\1', 1, true) and true
end

-- The size of the instance in KiB: the records of its scopes, the initial data of its forks, their results, and
-- external inputs that are waiting. Parts smaller than one KiB count as zero, so most instances have no such field.
local function kib(bytes) return math.floor(bytes / 1024) end

local function weigh(by)
  if by == 0 then return end
  local weight = math.max((tonumber(read('z')) or 0) + by, 0)
  if weight > 0 then write('z', string.format('%d', weight)) else erase('z') end
end

local function kib_of(field)
  local value = known[field]
  if value == nil then return kib(call('HSTRLEN', K, field)) end
  return value and kib(#value) or 0
end

-- The size of an item in an inbox. The results of branches count where they are stored.
local function kib_of_item(scope, item)
  if not read('z') or string.find(item[2], 'fork-', 1, true) == 1 then return 0 end
  return kib_of('i:' .. scope .. ':' .. item[1])
end

-- Adds an input, at most once for its id. Returns 1 if it was added, 0 if it was there before. External inputs count
-- for the size; the results of branches count already.
local function inbox_add(scope, id, kind, payload, outside)
  if knows(scope, id) then return 0 end
  local number = next_number()
  local box = box_of(scope)
  if outside then weigh(kib(#payload)) end
  box[#box + 1] = { number, id, kind, '' }
  put_box(scope)
  write('i:' .. scope .. ':' .. number, payload)
  return 1
end

-- Marks the instance, because the global index of events must be updated for it.
local function dirty()
  is_dirty = 1
  call('ZADD', DIRTY, MICROS, INST)
end
