-- Records that all effects of an event were carried out. KEYS: 1 known, 2 open. ARGV: 1 event, 2 time, 3 '1' if the
-- claims of its starts have been released. If that must be done first, returns the groups with claims, otherwise
-- nothing. Starts by this event alone (=) have no claims.

local open = redis.call('HGET', KEYS[2], ARGV[1])
if not open then return false end
local claims = string.match(open, '^%d+ (%S+)')
if ARGV[3] ~= '1' and claims ~= '0' and string.sub(claims, 1, 1) ~= '=' then return claims end
redis.call('HDEL', KEYS[2], ARGV[1])
redis.call('ZADD', KEYS[1], 'XX', 'GT', ARGV[2], ARGV[1])
return false
