-- Counts the instances of a shard by status, in total and per workflow. KEYS: listings by time, then by workflow.
-- ARGV: workflows.

local counts = {}
for at = 1, 5 do counts[at] = redis.call('ZCARD', KEYS[at]) end
for _, workflow in ipairs(ARGV) do
  for at = 6, 10 do
    counts[#counts + 1] = redis.call('ZLEXCOUNT', KEYS[at], '[' .. workflow .. '\1', '(' .. workflow .. '\2')
  end
end
return counts
