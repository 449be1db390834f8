-- Moves an instance to another version of its definition: all its records, or nothing. ARGV: 4 lines of history to
-- keep, 5 a mark or '', 6 maximum number of marks, 7 header, 8 version; then counted lists: fields with their required
-- values ('' for none); forks (name, origin, stamp, and a counted list of results: index, result); inputs (field,
-- input); scopes (name, record, revision, flags, and a counted list of changes); last lines of history, and the
-- elements that contain them. KEYS: those of Span::All, 10.. the listings, last the index of attributes. Returns {
-- 'unknown' }, { 'known' } if it has the mark, { 'changed' } if it has changed since it was read, or { 'done', woken
-- scopes, the mark if it is dirty, and then its waits }.

begin('n', 'h', 'hn', 'om', 'lw', 'z')
if not STATUS then return { 'unknown' } end
local marked, count = read('om') or ' ', 0
if ARGV[5] ~= '' and string.find(marked, ' ' .. ARGV[5] .. ' ', 1, true) then return { 'known' } end

local cursor = 8
local function take()
  cursor = cursor + 1
  return ARGV[cursor]
end
local function take_number() return tonumber(take()) end

-- The changes of a scope's timers and waits, and of the instance's correlation and attributes.
local changes = {
  arm = function() arm(SCOPE, take(), take(), take()) end,
  disarm = function() disarm(SCOPE, take()) end,
  wait = function()
    local field = 'w:' .. SCOPE .. ':' .. take()
    put_wait(field, MICROS .. '\n' .. take())
  end,
  unwait = function()
    if call('HDEL', EVENTS, 'w:' .. SCOPE .. ':' .. take()) == 1 then dirty() end
  end,
  correlate = function() correlate(take(), take()) end,
  -- <name>\1<value>, each followed by a zero byte. The last key is the index of attributes.
  index = function()
    local now, before, index = take(), {}, KEYS[#KEYS]
    local tail = '\1' .. string.match(read('lw'), '\1(%d+)\1') .. '\1' .. INST
    for head in string.gmatch(read('at') or '', '[^%z]+') do before[head] = true end
    for head in string.gmatch(now, '[^%z]+') do
      if not before[head] then call('ZADD', index, 0, head .. tail) end
      before[head] = nil
    end
    for head in pairs(before) do call('ZREM', index, head .. tail) end
    if now == '' then erase('at') else write('at', now) end
  end,
}

local fields, values = {}, {}
for at = 1, take_number() do fields[at], values[at] = take(), take() end
fetch(fields)
for at, field in ipairs(fields) do
  if (known[field] or '') ~= values[at] then return { 'changed' } end
end
local all = fields_of()
for _, field in ipairs(all) do
  if string.sub(field, 1, 2) == 'l:' and lease_of(string.sub(field, 3)).till > NOW then return { 'changed' } end
end
-- A late holder cannot commit.
for _, field in ipairs(all) do
  if string.sub(field, 1, 2) == 'l:' then drop_lease(string.sub(field, 3)) end
end

if ARGV[5] ~= '' then
  marked = marked .. ARGV[5] .. ' '
  for _ in string.gmatch(marked, '%S+') do count = count + 1 end
  for _ = tonumber(ARGV[6]) + 1, count do marked = string.gsub(marked, '^ %S+', '', 1) end
  write('om', marked)
end
write('h', ARGV[7])
do
  local place = read('lw')
  local workflow, time = string.match(place, '^(.-)\1(%d+)\1')
  list_remove(10, STATUS, place)
  place = workflow .. '\1' .. time .. '\1' .. ARGV[8] .. '\1' .. INST
  list_add(10, STATUS, place)
  write('lw', place)
end

for _ = 1, take_number() do
  local name, origin = take(), take()
  local fork = fork_of(name)
  weigh(kib(#origin) - kib_of('f:' .. name))
  write('f:' .. name, origin)
  -- A process that read the fork before can't begin a branch of it.
  fork.stamp = take()
  for _ = 1, take_number() do
    local field, result = 'b:' .. name .. '.' .. take(), take()
    local before, size = kib(fork.bytes), #(read(field) or '')
    fork.bytes = math.max(fork.bytes + #result - size, 0)
    weigh(kib(fork.bytes) - before)
    write(field, result)
  end
  put_fork(name, fork)
end
for _ = 1, take_number() do
  local field = take()
  write(field, take())
end
for _ = 1, take_number() do
  SCOPE = take()
  put_scope(SCOPE, take(), take(), take())
  for _ = 1, take_number() do changes[take()]() end
end
SCOPE = 'r'
add_lines(tonumber(ARGV[4]), cursor + 1)
for _, scope in ipairs(refresh_all(fields_of())) do woken[#woken + 1] = scope end
local waits_for = is_dirty == 1 and call('HGETALL', EVENTS) or {}
return { 'done', woken, is_dirty == 1 and MICROS or '', waits_for }
