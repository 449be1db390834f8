-- Replaces the definition under its id. KEYS: 1 records, 2 order, 3 revision, 4 heads, 5 changes. ARGV: 1 id, 2 record,
-- 3 head.

redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('HSET', KEYS[4], ARGV[1], ARGV[3])
redis.call('LREM', KEYS[2], 0, ARGV[1])
redis.call('RPUSH', KEYS[2], ARGV[1])
local revision = redis.call('INCR', KEYS[3])
redis.call('ZADD', KEYS[5], revision, ARGV[1])
return revision
