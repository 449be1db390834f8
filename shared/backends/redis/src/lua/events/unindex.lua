-- Removes a member if its score hasn't changed. KEYS: 1 the index. ARGV: 1 member, 2 score.

if redis.call('ZSCORE', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
return redis.call('ZREM', KEYS[1], ARGV[1])
