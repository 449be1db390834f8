-- Stores a definition, once. KEYS: 1 records, 2 order, 3 revision, 4 heads, 5 changes. ARGV: 1 id, 2 record, 3 head.
-- Returns the existing record, if there is one.

local found = redis.call('HGET', KEYS[1], ARGV[1])
if found then return found end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('HSET', KEYS[4], ARGV[1], ARGV[3])
redis.call('RPUSH', KEYS[2], ARGV[1])
redis.call('ZADD', KEYS[5], redis.call('INCR', KEYS[3]), ARGV[1])
return false
