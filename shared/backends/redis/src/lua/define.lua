-- Stores a definition, once. KEYS: 1 records, 2 revision, 3 heads, 4 changes. ARGV: 1 id, 2 record, 3 head. Returns
-- the existing record, if there is one.

local found = redis.call('HGET', KEYS[1], ARGV[1])
if found then return found end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('HSET', KEYS[3], ARGV[1], ARGV[3])
redis.call('ZADD', KEYS[4], redis.call('INCR', KEYS[2]), ARGV[1])
return false
