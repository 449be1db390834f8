-- Returns members of an index that are older than a grace time, and postpones them. KEYS: 1 the index. ARGV: 1 grace,
-- 2 how long to postpone them (0: not at all), 3 how many.

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local found = redis.call('ZRANGE', KEYS[1], '-inf', now - ARGV[1], 'BYSCORE', 'LIMIT', 0, ARGV[3])
if ARGV[2] ~= '0' then
  for _, member in ipairs(found) do
    redis.call('ZADD', KEYS[1], now - ARGV[1] + ARGV[2], member)
  end
end
return found
