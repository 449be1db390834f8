-- Returns a page of the definitions that changed after a revision. KEYS: 1 heads, 2 changes. ARGV: 1 revision, 2 page
-- size. Returns id, revision and head of each definition.

local page = redis.call('ZRANGE', KEYS[2], '(' .. ARGV[1], '+inf', 'BYSCORE', 'LIMIT', 0, ARGV[2], 'WITHSCORES')
local found = {}
for i = 1, #page, 2 do
  found[#found + 1] = page[i]
  found[#found + 1] = page[i + 1]
  found[#found + 1] = redis.call('HGET', KEYS[1], page[i]) or ''
end
return found
