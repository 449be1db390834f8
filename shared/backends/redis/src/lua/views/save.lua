-- Saves a view in place of the one with its name. KEYS: 1 the views. ARGV: 1 the name, 2 the view, 3 how many there may
-- be. Returns 1, or 0: the name is new, and there are too many.

local call = redis.call
if call('HEXISTS', KEYS[1], ARGV[1]) == 0 and call('HLEN', KEYS[1]) >= tonumber(ARGV[3]) then return 0 end
call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1
