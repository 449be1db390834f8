-- Creates a batch from the instances of a draft. KEYS: 1 all batches, 2 active batches, 3 the batch, 4 its instances,
-- 5 the draft. ARGV: 1 id, 2 time of creation, 3 the order, 4 number of instances, 5 how many may be active.
-- Returns 1, 0 if the batch exists already, -1 if the draft is no longer complete, or -2 if too many are active.

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
if call('ZCARD', KEYS[2]) >= tonumber(ARGV[5]) then
  call('DEL', KEYS[5])
  return -2
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
