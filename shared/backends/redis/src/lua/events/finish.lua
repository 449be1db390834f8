-- Stores the outcome of an event. KEYS: 1 open. ARGV: 1 event, 2 generation, 3 groups with claims of its starts ('0':
-- none), 4 outcome. Returns the valid outcome, which is the one that was stored first; nothing if the event was
-- acknowledged meanwhile, or forgotten.

local open = redis.call('HGET', KEYS[1], ARGV[1])
local generation, outcome = string.match(open or '', '^(%d+) %S+ ?(.*)$')
if generation ~= ARGV[2] then return false end
if outcome ~= '' then return outcome end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. ' ' .. ARGV[3] .. ' ' .. ARGV[4])
return ARGV[4]
