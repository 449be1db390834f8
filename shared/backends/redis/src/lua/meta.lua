-- What a namespace is like; it is settled when it is first used. KEYS: 1 its notes. ARGV: 1 shards,
-- 2 layout, 3 a name that nobody else has. Returns shards, layout and name as they are.

if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('HSET', KEYS[1], 'shards', ARGV[1], 'layout', ARGV[2])
end
redis.call('HSETNX', KEYS[1], 'installation', ARGV[3])
local found = redis.call('HMGET', KEYS[1], 'shards', 'layout', 'installation')
return { found[1] or '', found[2] or '', found[3] }
