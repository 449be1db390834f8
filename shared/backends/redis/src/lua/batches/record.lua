-- Records outcomes, if exactly the outcomes before them are recorded. KEYS: 1 active batches, 2 the batch, 3 its
-- instances, 4 the outcomes. ARGV: 1 id, 2 number of recorded outcomes, 3 now, 4 done, 5 refused, 6 failed, 7 number of
-- refusal codes, then each code with its count, then the outcomes.

local call = redis.call
local codes = 2 * tonumber(ARGV[7])
local found, from, count = call('HGET', KEYS[2], 'state'), tonumber(ARGV[2]), #ARGV - 7 - codes
if found and count > 0 and call('LLEN', KEYS[4]) == from then
  local all = call('LLEN', KEYS[3])
  if from + count <= all then
    call('RPUSH', KEYS[4], unpack(ARGV, 8 + codes))
    call('HINCRBY', KEYS[2], 'done', ARGV[4])
    call('HINCRBY', KEYS[2], 'refused', ARGV[5])
    call('HINCRBY', KEYS[2], 'failed', ARGV[6])
    for at = 8, 7 + codes, 2 do call('HINCRBY', KEYS[2], 'code:' .. ARGV[at], ARGV[at + 1]) end
    if from + count == all and (found == 'running' or found == 'paused') then
      call('HSET', KEYS[2], 'state', 'completed', 'ended', ARGV[3])
      call('ZREM', KEYS[1], ARGV[1])
    end
  end
end
return call('HGETALL', KEYS[2])
