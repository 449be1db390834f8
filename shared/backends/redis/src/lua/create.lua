-- Creates an instance. ARGV: 4 header, 5 record, 6 flags, 7 workflow, 8 version, 9 key ('' if none), 10 its retention
-- ('' if its definition has none), 11 the process that waits for the end ('' if none), 12 the Redis key of its business
-- key ('' if none), 13 number of events that start it, then generation and digest of each, then the number of
-- correlation values, name and value of each, then sequence, due time and kind of timers. KEYS: 10 keys by which
-- instances were started, 11.. listings. Returns nothing, or the header of the instance that already exists.

begin('z')
if STATUS then
  return read('h')
end
local place = ARGV[7] .. '\1' .. MICROS .. '\1' .. ARGV[8] .. '\1' .. INST
STATUS = 'r'
write('s', 'r')
write('h', ARGV[4])
write('lw', place)
if ARGV[9] ~= '' then
  write('key', ARGV[9])
  call('ZADD', KEYS[10], 0, ARGV[9] .. '\1' .. INST)
end
if ARGV[10] ~= '' then write('kp', ARGV[10]) end
if ARGV[11] ~= '' then write('w', ARGV[11]) end
if ARGV[12] ~= '' then write('nk', ARGV[12]) end
put_scope('r', ARGV[5], 0, ARGV[6])
list_add(11, 'r', place)
local at = 14
for _ = 1, tonumber(ARGV[13]) do
  call('ZADD', HAD, ARGV[at], ARGV[at + 1])
  at = at + 2
end
local values = tonumber(ARGV[at])
at = at + 1
-- A removed instance with this name may still be in the index.
if values > 0 then call('HDEL', EVENTS, 'over') end
for _ = 1, values do
  correlate(ARGV[at], ARGV[at + 1])
  at = at + 2
end
while ARGV[at] do
  arm('r', ARGV[at], ARGV[at + 1], ARGV[at + 2])
  at = at + 3
end
refresh('r')
return false
