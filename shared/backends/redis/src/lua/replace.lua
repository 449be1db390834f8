-- Replaces the definition under its id. KEYS: 1 records, 2 revision, 3 heads, 4 changes. ARGV: 1 id, 2 record, 3 head,
-- 4 the record that must be there, unless it is empty. Returns 0 if there is another.

if ARGV[4] ~= '' and redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[4] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('HSET', KEYS[3], ARGV[1], ARGV[3])
local revision = redis.call('INCR', KEYS[2])
redis.call('ZADD', KEYS[4], revision, ARGV[1])
return revision
