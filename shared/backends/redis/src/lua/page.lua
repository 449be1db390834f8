-- Returns a page of a shard's listing, newest first, as pairs of time and instance. KEYS: listings, one per status.
-- ARGV: 1 workflow or '', 2 the time before which it begins or '', 3 how many.

local found = {}
for _, key in ipairs(KEYS) do
  if ARGV[1] == '' then
    local from = ARGV[2] == '' and '+inf' or ARGV[2]
    local page = redis.call('ZRANGE', key, from, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, ARGV[3],
      'WITHSCORES')
    for at = 1, #page, 2 do
      found[#found + 1] = { string.format('%.0f', page[at + 1]), page[at] }
    end
  else
    local first = ARGV[1] .. '\1'
    local below = ARGV[2] == '' and ARGV[1] .. '\2' or first .. ARGV[2] .. '\2'
    local page = redis.call('ZRANGE', key, '(' .. below, '[' .. first, 'BYLEX', 'REV',
      'LIMIT', 0, ARGV[3])
    for _, member in ipairs(page) do
      local time, instance = string.match(member, '^.-\1(%d+)\1.-\1(.*)$')
      found[#found + 1] = { time, instance }
    end
  end
end
table.sort(found, function(a, b)
  if a[1] ~= b[1] then return a[1] > b[1] end
  return a[2] > b[2]
end)
local answer = {}
for at = 1, math.min(#found, tonumber(ARGV[3])) do
  answer[#answer + 1] = found[at][1]
  answer[#answer + 1] = found[at][2]
end
return answer
