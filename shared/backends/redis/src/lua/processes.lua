-- Notes a sign of life of a process, or that it leaves. KEYS: 1 processes by their last sign of life, 2 their
-- descriptions. ARGV: 1 process, 2 its description; empty: it leaves, 3 milliseconds after which a silent process is
-- forgotten, 4 how many are remembered.

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local kept, most = tonumber(ARGV[3]), tonumber(ARGV[4])
local gone = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now - kept)
if ARGV[2] == '' then
  gone[#gone + 1] = ARGV[1]
else
  redis.call('ZADD', KEYS[1], now, ARGV[1])
  redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
end
for _, process in ipairs(gone) do
  if process ~= ARGV[1] or ARGV[2] == '' then
    redis.call('ZREM', KEYS[1], process)
    redis.call('HDEL', KEYS[2], process)
  end
end
local over = redis.call('ZCARD', KEYS[1]) - most
if over > 0 then
  for _, process in ipairs(redis.call('ZRANGE', KEYS[1], 0, over - 1)) do
    redis.call('ZREM', KEYS[1], process)
    redis.call('HDEL', KEYS[2], process)
  end
end
redis.call('PEXPIRE', KEYS[1], kept)
redis.call('PEXPIRE', KEYS[2], kept)
return 1
