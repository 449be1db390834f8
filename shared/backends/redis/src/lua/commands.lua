-- Carries out the commands of a commit, with one function per command. Inserted between the libraries and commit.lua.

local OUTBOX, ENDED, HISTORY
-- The index in ARGV before the next argument.
local cursor
local gone
-- The ids to return; and the list of all ids, once there are new ones.
local effects, outbox
-- The complete forks: parent, the number of results that it reads, their bytes.
local complete

local function take()
  cursor = cursor + 1
  return ARGV[cursor]
end
local function take_number() return tonumber(take()) end

local function put_out(effect, child)
  local id = next_number()
  write('o:' .. id, effect)
  outbox = outbox or read('O') or ''
  outbox = outbox .. ' ' .. id
  effects[#effects + 1] = id
  effects[#effects + 1] = child
end

-- Removes processed inputs from the inbox. Returns the timers among them.
local function consume()
  local timers, remembered = {}, {}
  local box = box_of(SCOPE)
  local left, size = {}, #box
  local wanted = {}
  for _ = 1, take_number() do wanted[take()] = true end
  if size == 0 then return timers end
  for _, item in ipairs(box) do
    if wanted[item[2]] then
      weigh(-kib_of_item(SCOPE, item))
      erase('i:' .. SCOPE .. ':' .. item[1])
      if item[3] == 't' then
        timers[string.match(item[2], '^timer%-(%d+)$') or ''] = true
      elseif item[3] ~= 'o' then
        remembered[#remembered + 1] = short(item[2])
      end
    else
      left[#left + 1] = item
    end
  end
  if #left < size then
    boxes[SCOPE] = left
    put_box(SCOPE)
  end
  -- Ids contain sequence numbers, so older ids belong to a call or wait that is over.
  if #remembered > 0 and not gone then
    local seen = read('x:' .. SCOPE) or '\1'
    seen = seen .. table.concat(remembered, '\1') .. '\1'
    while #seen > 4096 do seen = string.sub(seen, string.find(seen, '\1', 2, true), -1) end
    write('x:' .. SCOPE, seen)
  end
  return timers
end

-- Notifies the parent that a fork is complete, or that a branch of it failed. The parent reads the results itself;
-- after a batch that isn't the last one, it reads none.
local function notify_parent(name)
  local fork = fork_of(name)
  local parent, number = string.match(name, '^(.+)%.(%d+)$')
  fork.notified = 1
  fork.notification_count = fork.notification_count + 1
  put_fork(name, fork)
  if not is_there(parent) then return end
  local input = '{"Joined":{"fork":' .. number .. ',"results":[],"done":' .. fork.done .. '}}'
  if inbox_add(parent, 'fork-' .. number .. '-' .. fork.notification_count, 'k', input) ~= 1 then return end
  wake(parent)
  if fork.failed > 0 or fork.open ~= fork.needed or fork.open == fork.total then
    complete[#complete + 1] = parent
    complete[#complete + 1] = fork.done + fork.failed
    complete[#complete + 1] = string.format('%.0f', fork.bytes)
  end
end

local function count(fork, result, by)
  local before = kib(fork.bytes)
  fork.bytes = math.max(fork.bytes + by * #result, 0)
  weigh(kib(fork.bytes) - before)
  if string.sub(result, 1, 7) == '{"Done"' then
    fork.done = fork.done + by
    return false
  end
  fork.failed = fork.failed + by
  return true
end

local function set_status(status, at)
  local place = read('lw')
  list_remove(10, STATUS, place)
  list_add(10, status, place)
  STATUS = status
  write('s', status)
  -- As in retention.rs.
  local keep = at and read('kp') and string.match(read('kp'), status .. '(%d+)')
  if keep then at = string.format('%.0f', 4e15 + at + keep) end
  if at and status == 'f' then at = string.format('%.0f', -1 - at) end
  if at then call('ZADD', ENDED, at, INST) else call('ZREM', ENDED, INST) end
end

local commands = {}

commands['arm'] = function() arm(SCOPE, take(), take(), take()) end
commands['disarm'] = function() disarm(SCOPE, take()) end
commands['subscribe'] = function()
  local field = 'w:' .. SCOPE .. ':' .. take()
  put_wait(field, MICROS .. '\n' .. take())
end
commands['unsubscribe'] = function()
  if call('HDEL', EVENTS, 'w:' .. SCOPE .. ':' .. take()) == 1 then dirty() end
end
commands['correlate'] = function() correlate(take(), take()) end

commands['fork'] = function()
  local parent, number = take(), take()
  local origin, total, open, needed = take(), take_number(), take_number(), take_number()
  local most = take_number()
  local name = parent .. '.' .. number
  weigh(kib(#origin))
  write('f:' .. name, origin)
  put_fork(name, {
    total = total, open = open, needed = needed, notified = 0, closed = 0, notification_count = 0,
    done = 0, failed = 0, live = 0, stamp = MICROS,
    bytes = 0, most = most,
  })
  local list = fork_list(parent)
  list[#list + 1] = tonumber(number)
  put_fork_list(parent, list)
  for index = 0, open - 1 do wake(name .. '.' .. index) end
end

commands['extend'] = function()
  local name, open, needed = SCOPE .. '.' .. take(), take_number(), take_number()
  local fork = fork_of(name)
  if not fork then return end
  local before = fork.open
  fork.open, fork.needed, fork.notified = math.min(open, fork.total), needed, 0
  put_fork(name, fork)
  for index = before, fork.open - 1 do wake(name .. '.' .. index) end
  if fork.failed > 0 or fork.done >= fork.needed then notify_parent(name) end
end

commands['close'] = function() close_fork(SCOPE .. '.' .. take()) end

local function is_error(result)
  return result and string.sub(result, 1, 9) == '{"Failed"'
end

-- The branches of a fork, except one, whose result is an error.
local function others_that_failed(name, fork, but)
  local fields = {}
  for index = 0, fork.open - 1 do fields[#fields + 1] = 'b:' .. name .. '.' .. index end
  fetch(fields)
  local found = {}
  for at, field in ipairs(fields) do
    if at - 1 ~= but and is_error(known[field]) then found[#found + 1] = at - 1 end
  end
  return found
end

-- Continues a branch if it failed, and on request all other failed branches. The parent is notified now of those that
-- remain, and if enough branches are done.
commands['revive'] = function()
  local name, index, others = SCOPE .. '.' .. take(), take_number(), take_number()
  local id, kind, input = take(), take(), take()
  local fork = fork_of(name)
  if not fork then return end
  local indexes = { index }
  local alone = fork.failed == 1 and is_error(read('b:' .. name .. '.' .. index))
  if others == 1 and not alone then
    for _, other in ipairs(others_that_failed(name, fork, index)) do indexes[#indexes + 1] = other end
  end
  fork.notified = 0
  for _, at in ipairs(indexes) do
    local branch = name .. '.' .. at
    local result = read('b:' .. branch)
    if is_error(result) then
      erase('b:' .. branch)
      count(fork, result, -1)
      if inbox_add(branch, id, kind, input) == 1 then wake(branch) end
    end
  end
  put_fork(name, fork)
  if fork.failed > 0 or fork.done >= fork.needed then notify_parent(name) end
end

commands['detach'] = function()
  local scope = take()
  put_scope(scope, take(), take(), take())
  wake(scope)
end

commands['report'] = function()
  local result = take()
  local name, _, index = branch_of(SCOPE)
  local fork = name and fork_of(name)
  if not fork or fork.closed == 1 or index >= fork.total then return end
  if read('b:' .. SCOPE) then return end
  if fork.most > 0 and fork.bytes + #result > fork.most and string.sub(result, 1, 7) == '{"Done"' then
    result = '{"Failed":{"name":"LimitExceeded","message":"the results of all branches would be larger than '
      .. string.format('%.0f', fork.most) .. ' bytes"}}'
  end
  write('b:' .. SCOPE, result)
  local urgent = count(fork, result, 1)
  if fork.notified == 0 and (urgent or fork.done >= fork.needed) then
    notify_parent(name)
  else
    put_fork(name, fork)
  end
end

commands['effect'] = function() put_out(take(), '') end

commands['end'] = function()
  local status, output, err = take(), take(), take()
  fetch({ 'lw', 'w', 'k', 'kp' })
  erase('out')
  erase('err')
  set_status(status, ARGV[9])
  write('end', ARGV[9])
  local watcher = read('w')
  if watcher then call('PUBLISH', NS .. ':p:' .. watcher, INST) end
  if output ~= '' then write('out', output) end
  if err ~= '' then write('err', err) end
  -- Asynchronous sub-workflows end even when their parent faults, since a retry of the parent won't start them again.
  local children = read('k')
  erase('k')
  if status ~= 'f' then
    SUSPENDED = false
    erase('p')
    if waits() then
      call('HSET', EVENTS, 'over', '1')
      dirty()
    end
    local open = {}
    for _, field in ipairs(fields_of()) do
      local name = string.match(field, '^g:(.+)$')
      if name and closed(string.match(name, '^(.+)%.%d+$')) then open[#open + 1] = name end
    end
    table.sort(open)
    for _, name in ipairs(open) do close_fork(name) end
  end
  refresh_all(fields_of())
  for _, child in ipairs(children and cmsgpack.unpack(children) or {}) do
    put_out('{"EndInstance":{"id":' .. cjson.encode(child) .. ',"status":"terminated"}}', child)
  end
end

-- The instance's search attributes: <name>\1<value>, each followed by a zero byte. The last key is the index of
-- attributes.
commands['index'] = function()
  local now, before, index = take(), {}, KEYS[#KEYS]
  local tail = '\1' .. string.match(read('lw'), '\1(%d+)\1') .. '\1' .. INST
  for head in string.gmatch(read('at') or '', '[^%z]+') do before[head] = true end
  for head in string.gmatch(now, '[^%z]+') do
    if not before[head] then call('ZADD', index, 0, head .. tail) end
    before[head] = nil
  end
  for head in pairs(before) do call('ZREM', index, head .. tail) end
  if now == '' then erase('at') else write('at', now) end
end

commands['reopen'] = function()
  if over() then return end
  for _, field in ipairs({ 'err', 'out', 'end' }) do erase(field) end
  set_status('r', nil)
  for _, scope in ipairs(refresh_all(fields_of())) do woken[#woken + 1] = scope end
end
