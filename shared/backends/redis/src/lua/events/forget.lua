-- Forgets a kept event that has been removed from its buckets. KEYS: 1 kept, 2 bodies, 3 instances that consumed it,
-- 4 sizes. ARGV: 1 event, 2 its record when it was read.

if (redis.call('HGET', KEYS[2], ARGV[1]) or '') ~= ARGV[2] then return 0 end
if redis.call('HDEL', KEYS[2], ARGV[1]) == 1 then uncount(KEYS[4], ARGV[1], ARGV[2]) end
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('DEL', KEYS[3])
return 1
