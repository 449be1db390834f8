-- Stores a definition, once. KEYS: 1 records, 2 order, 3 revision. ARGV: 1 id, 2 record.
-- Returns the record that is there already, if there is one.

local found = redis.call('HGET', KEYS[1], ARGV[1])
if found then return found end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('RPUSH', KEYS[2], ARGV[1])
redis.call('INCR', KEYS[3])
return false
