-- The oldest kept events of a group. KEYS: 1 the events by their time, 2 bodies. ARGV: 1 how many. Returns event, time and
-- size of each.

local found = redis.call('ZRANGE', KEYS[1], 0, ARGV[1] - 1, 'WITHSCORES')
local rows = {}
for at = 1, #found, 2 do
  rows[#rows + 1] = found[at]
  rows[#rows + 1] = found[at + 1]
  rows[#rows + 1] = tostring(redis.call('HSTRLEN', KEYS[2], found[at]))
end
return rows
