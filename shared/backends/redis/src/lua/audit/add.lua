-- Adds an entry to the audit log, and removes the oldest ones beyond the limit. KEYS: 1 the log. ARGV: 1 the entry's id
-- and the entry, 2 how many are kept.

redis.call('ZADD', KEYS[1], 0, ARGV[1])
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -1 - tonumber(ARGV[2]))
return 1
