-- Records that an instance's index entries are current. KEYS: 1 dirty, 2 its waits. ARGV: 1 instance, 2 mark, 3 the
-- note that events were released ('' if none), 4 number of notes that are now true, these notes, then notes that are no
-- longer needed. Returns 1, or 0 if something has changed meanwhile.

local count = tonumber(ARGV[4])
for at = 5, 4 + count do
  if redis.call('HEXISTS', KEYS[2], ARGV[at]) == 1 then redis.call('HSET', KEYS[2], ARGV[at], '1') end
end
for at = 5 + count, #ARGV, 1000 do
  redis.call('HDEL', KEYS[2], unpack(ARGV, at, math.min(at + 999, #ARGV)))
end
if ARGV[3] ~= '' and redis.call('HGET', KEYS[2], 'F') == ARGV[3] then
  redis.call('HDEL', KEYS[2], 'F')
end
local mark = redis.call('ZSCORE', KEYS[1], ARGV[1])
if mark and tonumber(mark) ~= tonumber(ARGV[2]) then return 0 end
redis.call('ZREM', KEYS[1], ARGV[1])
if redis.call('HLEN', KEYS[2]) <= 2 then
  local left = redis.call('HKEYS', KEYS[2])
  local bare = true
  for _, field in ipairs(left) do bare = bare and (field == 'W' or field == 'over') end
  if bare then redis.call('DEL', KEYS[2]) end
end
return 1
