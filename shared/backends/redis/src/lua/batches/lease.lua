-- Takes or renews a batch's lease. KEYS: 1 the lease, 2 the batch. ARGV: 1 the carrier, 2 duration in milliseconds.
-- Returns 1, or 0 if another carrier has the lease or the batch doesn't exist.

local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] or redis.call('EXISTS', KEYS[2]) == 0 then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
