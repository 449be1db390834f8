-- Forgets events that are too old or too many. KEYS: 1 known, 2 open, 3 kept, 4 bodies. ARGV: 1 known events before
-- this time, 2 kept events before this time, 3 maximum number of kept events, 4 how many at once. Forgets known events
-- and returns their number; returns kept events with their records, which must first be removed from their buckets.

local old = redis.call('ZRANGE', KEYS[1], '-inf', '(' .. ARGV[1], 'BYSCORE', 'LIMIT', 0, ARGV[4])
for _, event in ipairs(old) do
  redis.call('ZREM', KEYS[1], event)
  redis.call('HDEL', KEYS[2], event)
end
local kept = redis.call('ZRANGE', KEYS[3], '-inf', '(' .. ARGV[2], 'BYSCORE', 'LIMIT', 0, ARGV[4])
local surplus = redis.call('ZCARD', KEYS[3]) - ARGV[3]
if #kept == 0 and surplus > 0 then
  kept = redis.call('ZRANGE', KEYS[3], 0, math.min(surplus, ARGV[4]) - 1)
end
local records = {}
for _, event in ipairs(kept) do
  records[#records + 1] = event
  records[#records + 1] = redis.call('HGET', KEYS[4], event) or ''
end
return { #old, records }
