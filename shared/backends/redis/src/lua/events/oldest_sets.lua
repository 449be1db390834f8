-- The groups with the oldest incomplete sets. KEYS: 1 the groups by their time, 2 the sizes. ARGV: 1 how many. Returns
-- group, time and size of each.

local found = redis.call('ZRANGE', KEYS[1], 0, ARGV[1] - 1, 'WITHSCORES')
local rows = {}
for at = 1, #found, 2 do
  rows[#rows + 1] = found[at]
  rows[#rows + 1] = found[at + 1]
  rows[#rows + 1] = redis.call('HGET', KEYS[2], found[at]) or ''
end
return rows
