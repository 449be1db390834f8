-- What every script of an instance begins with: the instance's hash, its scopes' inboxes and
-- leases, and the index of what should run.
--
-- KEYS, as far as a script needs them (keys.rs): 1 instance, 2 ready, 3 timers, 4 dirty,
-- 5 what it waits for, 6 events that it had, 7 outbox, 8 ended, 9 history; then the script's own.
-- ARGV: 1 instance, 2 namespace, 3 the scope that the script is about (may be ''); then its own.
--
-- Fields of the instance's hash: s status, p suspended, n counter, h header, r:<scope> record,
-- m:<scope> marks ("rev flags": e ended, d detached, g goes on by itself), l:<scope> lease,
-- q:<scope> inbox, i:<scope>:<n> an input, x:<scope> ids of inputs that were consumed,
-- t:<scope> armed timers, f:<fork> origin, g:<fork> counters, b:<fork>.<index> a result,
-- F:<scope> its forks, O outbox, o:<n> an effect, k children.

local KEYS, ARGV
local K, READY, TIMERS, DIRTY, EVENTS, HAD
local INST, NS, SCOPE
-- Milliseconds; microseconds as text: a number of 16 digits is cut where Lua makes text of it.
local NOW, MICROS
local STATUS, SUSPENDED
-- The scope whose holder runs this script, which needs no message about it.
local ME
-- Scopes that became runnable.
local woken
local is_dirty
local marks, leases, boxes, forks
-- Timers that were armed; whether somebody was told.
local armed_now, told_timers
local call

local function read_marks(text)
  if not text then return false end
  local rev, flags = string.match(text, '^(%d+) (%a*)$')
  if not rev then error('DAMAGED marks of a scope of ' .. INST) end
  return {
    rev = tonumber(rev),
    ended = string.find(flags, 'e', 1, true) and true,
    detached = string.find(flags, 'd', 1, true) and true,
    goes = string.find(flags, 'g', 1, true) and true,
  }
end

local function read_lease(text)
  if not text then return false end
  local token, till, told, holder, attempt = string.match(text, '^(%d+) (%d+) (%d) (%S+) (%d+)$')
  if not token then error('DAMAGED lease of a scope of ' .. INST) end
  return { token = token, till = tonumber(till), told = told, holder = holder, attempt = attempt }
end

local function read_box(text)
  return text and cmsgpack.unpack(text) or {}
end

-- All that is read of the scope in question comes in one go.
local function begin(keys, argv)
  KEYS, ARGV, call = keys, argv, redis.call
  K, READY, TIMERS, DIRTY, EVENTS, HAD = keys[1], keys[2], keys[3], keys[4], keys[5], keys[6]
  INST, NS, SCOPE = argv[1], argv[2], argv[3]
  local time = call('TIME')
  NOW = time[1] * 1000 + math.floor(time[2] / 1000)
  MICROS = string.format('%d%06d', time[1], time[2])
  local found = call('HMGET', K, 's', 'p', 'm:' .. SCOPE, 'l:' .. SCOPE, 'q:' .. SCOPE)
  STATUS, SUSPENDED = found[1], found[2] and true
  ME, woken, is_dirty = nil, {}, 0
  armed_now, told_timers = 0, false
  marks, leases, boxes, forks = {}, {}, {}, {}
  marks[SCOPE], leases[SCOPE], boxes[SCOPE] =
    read_marks(found[3]), read_lease(found[4]), read_box(found[5])
end

-- Of a scope's record; false where there is none.
local function marks_of(scope)
  local known = marks[scope]
  if known == nil then
    known = read_marks(call('HGET', K, 'm:' .. scope))
    marks[scope] = known
  end
  return known
end

local function lease_of(scope)
  local known = leases[scope]
  if known == nil then
    known = read_lease(call('HGET', K, 'l:' .. scope))
    leases[scope] = known
  end
  return known
end

local function put_lease(scope, lease)
  leases[scope] = lease
  call('HSET', K, 'l:' .. scope, string.format('%s %.0f %s %s %s',
    lease.token, lease.till, lease.told, lease.holder, lease.attempt))
end

local function drop_lease(scope)
  leases[scope] = false
  call('HDEL', K, 'l:' .. scope)
end

-- Items { n, id, kind, token of the lease that was given it }; kinds: o what an operator says,
-- t a timer or wake-up, e an event, k others.
local function box_of(scope)
  local known = boxes[scope]
  if known == nil then
    known = read_box(call('HGET', K, 'q:' .. scope))
    boxes[scope] = known
  end
  return known
end

local function put_box(scope)
  local box = boxes[scope]
  if #box == 0 then
    call('HDEL', K, 'q:' .. scope)
  else
    call('HSET', K, 'q:' .. scope, cmsgpack.pack(box))
  end
end

-- Numbers of a fork; `name` is <parent>.<number>.
local function fork_of(name)
  local known = forks[name]
  if known == nil then
    known = false
    local text = call('HGET', K, 'g:' .. name)
    if text then
      local n = {}
      for word in string.gmatch(text, '%S+') do n[#n + 1] = tonumber(word) end
      if #n ~= 9 then error('DAMAGED fork ' .. name .. ' of ' .. INST) end
      known = {
        total = n[1], open = n[2], needed = n[3], told = n[4], closed = n[5], tellings = n[6],
        done = n[7], failed = n[8], live = n[9],
      }
    end
    forks[name] = known
  end
  return known
end

local function put_fork(name, fork)
  forks[name] = fork
  call('HSET', K, 'g:' .. name, table.concat({
    fork.total, fork.open, fork.needed, fork.told, fork.closed, fork.tellings,
    fork.done, fork.failed, fork.live }, ' '))
end

-- The fork, parent and index that a scope's name says: r.3.1 is branch 1 of fork r.3 of r.
local function branch_of(scope)
  local name, index = string.match(scope, '^(.+)%.(%d+)$')
  if not name then return nil end
  local parent = string.match(name, '^(.+)%.%d+$')
  if not parent then return nil end
  return name, parent, tonumber(index)
end

local function frozen() return SUSPENDED or STATUS == 'f' end
local function over() return STATUS ~= 'r' and STATUS ~= 'f' end

-- A branch that may run and has no record yet.
local function unborn(scope)
  if marks_of(scope) then return false end
  local name, _, index = branch_of(scope)
  if not name then return false end
  local fork = fork_of(name)
  return fork and fork.closed == 0 and index < fork.open
    and call('HEXISTS', K, 'b:' .. scope) == 0
end

local function is_there(scope)
  local mark = marks_of(scope)
  if mark then return not mark.ended end
  return unborn(scope)
end

-- Its fork, or one around it, is closed, or the instance is over. A detached scope goes on.
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
  if frozen() then return has_operator(scope) and is_there(scope) end
  local mark = marks_of(scope)
  if not mark then return unborn(scope) end
  if mark.ended then return false end
  if #box_of(scope) > 0 then return true end
  return mark.goes and not closed(scope)
end

-- Looks again whether a scope has something to do: it stands in the index from now on, or from
-- when its lease runs out. Tells its holder.
local function refresh(scope)
  local member = INST .. '/' .. scope
  local lease = lease_of(scope)
  local work = has_work(scope)
  if not work then
    call('ZREM', READY, member)
  elseif lease then
    call('ZADD', READY, lease.till, member)
  else
    call('ZADD', READY, 'LT', NOW, member)
  end
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

-- Whether an input waits or was consumed.
local function knows(scope, id)
  for _, item in ipairs(box_of(scope)) do
    if item[2] == id then return true end
  end
  local seen = call('HGET', K, 'x:' .. scope)
  return seen and string.find(seen, '\1' .. short(id) .. '\1', 1, true) and true
end

-- Adds an input, at most once for its id. 1: it was added, 0: it was there before.
local function inbox_add(scope, id, kind, payload)
  if knows(scope, id) then return 0 end
  local number = call('HINCRBY', K, 'n', 1)
  local box = box_of(scope)
  box[#box + 1] = { number, id, kind, '' }
  put_box(scope)
  call('HSET', K, 'i:' .. scope .. ':' .. number, payload)
  return 1
end

-- The global index of events is to be brought in line with the instance.
local function dirty()
  is_dirty = 1
  call('ZADD', DIRTY, MICROS, INST)
end
