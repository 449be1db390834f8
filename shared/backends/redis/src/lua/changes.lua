-- Returns a page of the definitions that changed after a revision. KEYS: 1 order, 2 revision, 3 heads, 4 changes.
-- ARGV: 1 revision, 2 page size. Returns id, revision and head of each definition. If the head is empty, the record has
-- it.

local top = redis.call('ZRANGE', KEYS[4], -1, -1, 'WITHSCORES')
local revision = redis.call('GET', KEYS[2]) or '0'
if (tonumber(top[2]) or 0) ~= tonumber(revision) then
  -- An older build wrote last. It maintains only the order, so any definition may have changed.
  redis.call('DEL', KEYS[3])
  for _, id in ipairs(redis.call('LRANGE', KEYS[1], 0, -1)) do
    redis.call('ZADD', KEYS[4], redis.call('INCR', KEYS[2]), id)
  end
end
local page = redis.call('ZRANGE', KEYS[4], '(' .. ARGV[1], '+inf', 'BYSCORE', 'LIMIT', 0, ARGV[2], 'WITHSCORES')
local found = {}
for i = 1, #page, 2 do
  found[#found + 1] = page[i]
  found[#found + 1] = page[i + 1]
  found[#found + 1] = redis.call('HGET', KEYS[3], page[i]) or ''
end
return found
