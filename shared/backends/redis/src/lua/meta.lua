-- Reads the properties of a namespace, which are fixed at its first use. KEYS: 1 its hash. ARGV: 1 shards, 2 layout, 3
-- a unique name, 4 the format of the records that the process writes. Returns the current shards, layout, name and
-- format, the previous format, and whether histories are followed ('1' or '').

if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('HSET', KEYS[1], 'shards', ARGV[1], 'layout', ARGV[2], 'format', ARGV[4])
end
redis.call('HSETNX', KEYS[1], 'installation', ARGV[3])
local found = redis.call('HMGET', KEYS[1], 'shards', 'layout', 'installation', 'format', 'followed')
local format = found[4] or '1'
if found[1] == ARGV[1] and found[2] == ARGV[2] and tonumber(format) < tonumber(ARGV[4]) then
  redis.call('HSET', KEYS[1], 'format', ARGV[4])
end
return { found[1] or '', found[2] or '', found[3], format, found[5] or '' }
