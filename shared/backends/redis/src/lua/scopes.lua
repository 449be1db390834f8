-- Functions that change scopes: timers, waits, forks, their beginning and their end. Inserted between the prelude and
-- the scripts that need them.

local function timers_of(scope)
  local text = read('t:' .. scope)
  return text and cmsgpack.unpack(text) or {}
end

local function put_timers(scope, timers)
  if #timers == 0 then
    erase('t:' .. scope)
  else
    write('t:' .. scope, cmsgpack.pack(timers))
  end
end

-- Returns true if the timer was armed.
local function take_timer(timers, seq)
  for at, timer in ipairs(timers) do
    if timer[1] == seq then
      call('ZREM', TIMERS, timer[2])
      table.remove(timers, at)
      return true
    end
  end
  return false
end

local function disarm(scope, seq)
  local timers = timers_of(scope)
  local there = take_timer(timers, seq)
  if there then put_timers(scope, timers) end
  return there
end

-- If two timers are due at once, their members sort by the order of arming.
local function arm(scope, seq, due, kind)
  local timers = timers_of(scope)
  take_timer(timers, seq)
  armed_now = armed_now + 1
  local member = MICROS .. string.format('%04d ', armed_now) .. scope .. ' ' .. seq .. ' ' .. kind .. ' ' .. INST
  timers[#timers + 1] = { seq, member }
  put_timers(scope, timers)
  if not notified_timers then
    local first = call('ZRANGE', TIMERS, 0, 0, 'WITHSCORES')
    if not first[2] or tonumber(due) < tonumber(first[2]) then
      notified_timers = true
      call('PUBLISH', NS .. ':timers', due)
    end
  end
  call('ZADD', TIMERS, due, member)
end

local function disarm_all(scope)
  local timers = timers_of(scope)
  for _, timer in ipairs(timers) do call('ZREM', TIMERS, timer[2]) end
  if #timers > 0 then erase('t:' .. scope) end
end

local function waits()
  if waiting == nil then waiting = call('EXISTS', EVENTS) == 1 end
  return waiting
end

-- The hash of an instance's waits begins with the name of its workflow.
local function put_wait(field, value)
  call('HSET', EVENTS, field, value)
  waiting = true
  local place = read('lw') or ''
  call('HSETNX', EVENTS, 'W', string.match(place, '^(.-)\1') or '')
  dirty()
end

local function drop_waits(scope)
  if not waits() then return end
  local prefix = 'w:' .. scope .. ':'
  local gone = false
  for _, field in ipairs(call('HKEYS', EVENTS)) do
    if string.sub(field, 1, #prefix) == prefix then
      call('HDEL', EVENTS, field)
      gone = true
    end
  end
  if gone then dirty() end
end

local function correlate(name, value)
  if call('HSETNX', EVENTS, 'c:' .. name, value) == 1 then
    put_wait('c:' .. name, value)
  end
end

-- Writes the record and its marks. A fork counts its branches that have records.
local function put_scope(scope, record, rev, flags)
  if #record >= 1024 or read('z') then weigh(kib(#record) - kib_of('r:' .. scope)) end
  if not marks_of(scope) then
    local name = branch_of(scope)
    local fork = name and fork_of(name)
    if fork then
      fork.live = fork.live + 1
      put_fork(name, fork)
    end
  end
  local text = rev .. ' ' .. flags .. ' ' .. MICROS
  marks[scope] = read_marks(text)
  write('r:' .. scope, record)
  write('m:' .. scope, text)
end

-- Removes timers, waits and inbox. Events that were not processed are released for other scopes of the instance.
local function empty_scope(scope)
  disarm_all(scope)
  drop_waits(scope)
  local box = box_of(scope)
  for _, item in ipairs(box) do
    weigh(-kib_of_item(scope, item))
    erase('i:' .. scope .. ':' .. item[1])
    local key = item[3] == 'e' and string.match(item[2], '^event%-%d+%-%d+%-(.*)$')
    if key then
      call('ZREM', HAD, string.sub(redis.sha1hex(key), 1, 32))
      -- Waits that have already searched for early events search again.
      if waits() then call('HSET', EVENTS, 'F', MICROS) end
      dirty()
    end
  end
  if #box > 0 then
    boxes[scope] = {}
    put_box(scope)
  end
  erase('x:' .. scope)
end

local function fork_list(scope)
  local list = {}
  for number in string.gmatch(read('F:' .. scope) or '', '%d+') do
    list[#list + 1] = tonumber(number)
  end
  table.sort(list)
  return list
end

local function put_fork_list(scope, list)
  if #list == 0 then
    erase('F:' .. scope)
  else
    write('F:' .. scope, table.concat(list, ' '))
  end
end

-- Removes a closed fork together with its last branch.
local function prune_fork(name)
  local fork = fork_of(name)
  if not fork or fork.closed == 0 or fork.live > 0 then return end
  forks[name] = false
  counted[name] = nil
  if read('z') then weigh(-kib_of('f:' .. name) - kib(fork.bytes)) end
  erase('f:' .. name)
  erase('g:' .. name)
  if fork.done + fork.failed > 0 then
    for index = 0, fork.total - 1 do erase('b:' .. name .. '.' .. index) end
  end
  local parent, number = string.match(name, '^(.+)%.(%d+)$')
  local list = {}
  for _, other in ipairs(fork_list(parent)) do
    if other ~= tonumber(number) then list[#list + 1] = other end
  end
  put_fork_list(parent, list)
end

local CANCEL = { cancelled = '{"Cancel":{"status":"cancelled"}}' }
local close_fork

local function remove_scope(scope)
  empty_scope(scope)
  local name = branch_of(scope)
  local lease = lease_of(scope)
  if marks_of(scope) then
    local fork = name and fork_of(name)
    if fork then
      fork.live = fork.live - 1
      put_fork(name, fork)
    end
  end
  marks[scope] = false
  leases[scope] = false
  if read('z') then weigh(-kib_of('r:' .. scope)) end
  erase('r:' .. scope)
  erase('m:' .. scope)
  erase('l:' .. scope)
  ready[INST .. '/' .. scope] = false
  if lease and scope ~= ME and lease.till > NOW then
    call('PUBLISH', NS .. ':p:' .. lease.holder, INST .. '/' .. scope)
  end
  for _, number in ipairs(fork_list(scope)) do close_fork(scope .. '.' .. number) end
  if name then prune_fork(name) end
end

-- Branches that have begun are cancelled, the others will never begin.
close_fork = function(name)
  local fork = fork_of(name)
  if not fork or fork.closed == 1 then return end
  fork.closed = 1
  put_fork(name, fork)
  -- If all branches have reported and are gone, there is nothing to do.
  if fork.live > 0 or fork.done + fork.failed < fork.open then
    local fields = {}
    for index = 0, fork.open - 1 do
      local branch = name .. '.' .. index
      for _, kind in ipairs({ 'm:', 'l:', 'q:' }) do fields[#fields + 1] = kind .. branch end
    end
    fetch(fields)
    for index = 0, fork.open - 1 do
      local branch = name .. '.' .. index
      if marks_of(branch) then
        if inbox_add(branch, 'cancel', 'o', CANCEL.cancelled) == 1 then wake(branch) end
      elseif lease_of(branch) or #box_of(branch) > 0 then
        remove_scope(branch)
      else
        ready[INST .. '/' .. branch] = false
      end
    end
  end
  prune_fork(name)
end

-- Like refresh, for all scopes of the instance, from the fields of its hash. Returns those with something to do, in
-- order.
local function refresh_all(fields)
  local scopes, open = {}, {}
  for _, field in ipairs(fields) do
    local mark = string.sub(field, 1, 2)
    if mark == 'm:' then
      scopes[#scopes + 1] = string.sub(field, 3)
    elseif mark == 'g:' then
      open[#open + 1] = string.sub(field, 3)
    end
  end
  for _, name in ipairs(open) do
    local fork = fork_of(name)
    if fork and fork.closed == 0 then
      for index = 0, fork.open - 1 do
        local branch = name .. '.' .. index
        if not marks_of(branch) then scopes[#scopes + 1] = branch end
      end
    end
  end
  table.sort(scopes)
  local ready = {}
  for _, scope in ipairs(scopes) do
    if refresh(scope) then ready[#ready + 1] = scope end
  end
  return ready
end
