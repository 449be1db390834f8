-- Sets a mark, unless it is later already. KEYS: 1 marks. ARGV: 1 name, 2 instant. Returns 1, or 0.

local mark = tonumber(redis.call('HGET', KEYS[1], ARGV[1]))
if mark and mark >= tonumber(ARGV[2]) then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1
