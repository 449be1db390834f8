-- Records up to where an instance's history was read. KEYS: 1 instance, 2 instances with unread entries. ARGV: 1
-- instance, 2 number of entries that were read, 3 now.

local found = redis.call('HMGET', KEYS[1], 's', 'hd', 'hn', 'le')
if not found[1] then
  redis.call('ZREM', KEYS[2], ARGV[1])
  return 0
end
local read = math.max(tonumber(found[4] or 0), tonumber(ARGV[2]))
redis.call('HSET', KEYS[1], 'le', string.format('%.0f', read))
if tonumber(found[2] or 0) + tonumber(found[3] or 0) <= read then
  redis.call('ZREM', KEYS[2], ARGV[1])
else
  redis.call('ZADD', KEYS[2], 'XX', ARGV[3], ARGV[1])
end
return 1
