-- Adds to one side of a bucket, and reads the other, so that the second of two callers sees the first. KEYS: 1 the side
-- to add to, 2 the side to read. ARGV: 1 score ('' to add nothing), 2 member, 3 how many.

if ARGV[1] ~= '' then redis.call('ZADD', KEYS[1], ARGV[1], ARGV[2]) end
return redis.call('ZRANGE', KEYS[2], 0, ARGV[3] - 1, 'WITHSCORES')
