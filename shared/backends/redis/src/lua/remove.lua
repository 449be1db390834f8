-- Removes an ended instance. ARGV: 4 the greatest position in the index at which it may be removed, 5 '1' to keep it if
-- its history has unread entries, 6 '1' if it has no key any more. KEYS: those of Span::All, 10 keys by which instances
-- were started, 11.. listings, 21 suspended instances, 22 the index of attributes, 23 instances with unread entries.
-- Returns 1; 2 if it had unread entries; 0 if it still has work or effects, or has changed; or the Redis key of its
-- business key, which must be released first.

begin('end', 'O', 'lw', 'key', 'nk', 'kp')
local OUTBOX, ENDED, HISTORY = KEYS[7], KEYS[8], KEYS[9]
if not STATUS then
  call('ZREM', ENDED, INST)
  call('ZREM', KEYS[23], INST)
  return 1
end
if STATUS == 'r' then
  call('ZREM', ENDED, INST)
  return 0
end
local ended_at = read('end')
-- As in retention.rs.
local keep = ended_at and read('kp') and string.match(read('kp'), STATUS .. '(%d+)')
if not ended_at or (keep and 4e15 + ended_at + keep or tonumber(ended_at)) > tonumber(ARGV[4]) then return 0 end
if read('O') or call('ZSCORE', DIRTY, INST) then return 0 end
if ARGV[5] == '1' and call('ZSCORE', KEYS[23], INST) then return 0 end
local fields = fields_of()
for _, field in ipairs(fields) do
  local kind, scope = string.sub(field, 1, 2), string.sub(field, 3)
  if kind == 'l:' and lease_of(scope).till > NOW then return 0 end
  if kind == 'm:' and over() and not marks_of(scope).ended then return 0 end
end
if ARGV[6] ~= '1' and read('nk') then return read('nk') end
local place, key = read('lw'), read('key')
for _, field in ipairs(fields) do
  local kind, scope = string.sub(field, 1, 2), string.sub(field, 3)
  if field == 'at' then
    local tail = '\1' .. string.match(place, '\1(%d+)\1') .. '\1' .. INST
    for head in string.gmatch(read('at'), '[^%z]+') do call('ZREM', KEYS[22], head .. tail) end
  end
  if kind == 'm:' then ready[INST .. '/' .. scope] = false end
  if kind == 't:' then
    for _, timer in ipairs(cmsgpack.unpack(read(field))) do call('ZREM', TIMERS, timer[2]) end
  end
end
list_remove(11, STATUS, place)
if key then call('ZREM', KEYS[10], key .. '\1' .. INST) end
call('ZREM', ENDED, INST)
call('ZREM', OUTBOX, INST)
call('SREM', KEYS[21], INST)
local unread = call('ZREM', KEYS[23], INST)
call('DEL', K, HAD, HISTORY)
-- A faulted instance is still in the indexes of waits and of active instances, and only its notes say where. They are
-- removed with the mark, and the rest with them.
local noted, rest = false, {}
for _, field in ipairs(call('HKEYS', EVENTS)) do
  local kind = string.sub(field, 1, 2)
  if kind == 'a:' or kind == 'x:' then noted = true else rest[#rest + 1] = field end
end
if noted then
  for first = 1, #rest, 1000 do call('HDEL', EVENTS, unpack(rest, first, math.min(first + 999, #rest))) end
  call('HSET', EVENTS, 'over', '1')
  dirty()
else
  call('DEL', EVENTS)
end
return 1 + unread
