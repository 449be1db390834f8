-- Creates a batch of the instances of a draft. KEYS: 1 batches, 2 those that have not ended, 3 the batch, 4 its
-- instances, 5 the draft. ARGV: 1 id, 2 when it is created, 3 the order, 4 how many instances. Returns 1, 0 (there is one),
-- or -1: the draft is not complete any more.

local call = redis.call
if call('EXISTS', KEYS[3]) == 1 then
  call('DEL', KEYS[5])
  return 0
end
local count = tonumber(ARGV[4])
if call('LLEN', KEYS[5]) ~= count then
  call('DEL', KEYS[5])
  return -1
end
call('HSET', KEYS[3], 'order', ARGV[3], 'done', 0, 'refused', 0, 'failed', 0)
if count == 0 then
  call('HSET', KEYS[3], 'state', 'completed', 'ended', ARGV[2])
else
  call('HSET', KEYS[3], 'state', 'running')
  call('RENAME', KEYS[5], KEYS[4])
  call('PERSIST', KEYS[4])
  call('ZADD', KEYS[2], ARGV[2], ARGV[1])
end
call('ZADD', KEYS[1], ARGV[2], ARGV[1])
return 1
