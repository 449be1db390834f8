-- Records that a start waits. KEYS: 1 the pending starts of its workflow, 2 those of all workflows. ARGV: 1 the
-- instance to start, 2 and 3 the maximum number in each (0: no limit), 4 now, 5 for how long a start counts without
-- being recorded again, in milliseconds. Returns 1, or 0 if too many wait.

local id, now, kept = ARGV[1], tonumber(ARGV[4]), tonumber(ARGV[5])
for at = 1, 2 do redis.call('ZREMRANGEBYSCORE', KEYS[at], '-inf', now - kept) end
if not redis.call('ZSCORE', KEYS[1], id) then
  for at = 1, 2 do
    local most = tonumber(ARGV[at + 1])
    if most > 0 and redis.call('ZCARD', KEYS[at]) >= most then return 0 end
  end
end
for at = 1, 2 do
  redis.call('ZADD', KEYS[at], now, id)
  redis.call('PEXPIRE', KEYS[at], kept)
end
return 1
