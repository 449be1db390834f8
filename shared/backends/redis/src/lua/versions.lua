-- Counts the newest instances of a workflow in a shard that run and that failed, by version. KEYS: their listings by
-- workflow. ARGV: the workflow, and the maximum number of instances of each listing.
--
-- Returns whether there are more, then each version with its two numbers.

local workflow, most = ARGV[1], tonumber(ARGV[2])
local versions, order, more = {}, {}, 0
for place = 1, 2 do
  local found = redis.call('ZRANGE', KEYS[place], '(' .. workflow .. '\2', '[' .. workflow .. '\1', 'BYLEX', 'REV',
    'LIMIT', 0, most + 1)
  if #found > most then more = 1 end
  for at = 1, math.min(#found, most) do
    local version = string.match(found[at], '^\1%d+\1(.-)\1', #workflow + 1)
    if version then
      local counts = versions[version]
      if not counts then
        counts = { 0, 0 }
        versions[version] = counts
        order[#order + 1] = version
      end
      counts[place] = counts[place] + 1
    end
  end
end
local answer = { more }
for _, version in ipairs(order) do
  local counts = versions[version]
  answer[#answer + 1] = version
  answer[#answer + 1] = counts[1]
  answer[#answer + 1] = counts[2]
end
return answer
