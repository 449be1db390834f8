-- Changes the state of a batch. KEYS: 1 active batches, 2 the batch. ARGV: 1 id, 2 the new state, 3 the time of the end
-- or '', 4.. the states from which the change is allowed.

local call = redis.call
local state = call('HGET', KEYS[2], 'state')
for at = 4, #ARGV do
  if ARGV[at] == state then
    call('HSET', KEYS[2], 'state', ARGV[2])
    if ARGV[3] ~= '' then
      call('HSET', KEYS[2], 'ended', ARGV[3])
      call('ZREM', KEYS[1], ARGV[1])
    end
    break
  end
end
return call('HGETALL', KEYS[2])
