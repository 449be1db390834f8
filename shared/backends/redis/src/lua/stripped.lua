-- Records when the next recorded data of an instance expires, unless its history has grown meanwhile. KEYS: 1 instance,
-- 2 instances with recorded data. ARGV: 1 instance, 2 previous number of entries, 3 when the next data expires, or ''.

local found = redis.call('HMGET', KEYS[1], 's', 'hd', 'hn')
if found[1] and tonumber(found[2] or 0) + tonumber(found[3] or 0) ~= tonumber(ARGV[2]) then return 0 end
if found[1] and ARGV[3] ~= '' then
  redis.call('ZADD', KEYS[2], 'XX', ARGV[3], ARGV[1])
else
  redis.call('ZREM', KEYS[2], ARGV[1])
end
return 1
