-- Notes how large the incomplete sets with the same values are. KEYS: 1 the groups with sets, by the time of their first
-- event; behind it and ':' and the name of the workflow those of a workflow; 2 the sizes, by group; 3 the sums. ARGV: 1
-- group, 2 its revision, 3 '1' if its revisions begin again, 4 bytes, 5 number of sets, 6 the name of the workflow and 7
-- time if there are sets. What a later revision has noted stays. Returns 1 or 0.

local function add(field, more)
  if redis.call('HINCRBY', KEYS[3], field, more) <= 0 then redis.call('HDEL', KEYS[3], field) end
end

local function add_all(bytes, count, workflow)
  add('bytes', bytes)
  add('sets', count)
  add(workflow, bytes)
end

local old = redis.call('HGET', KEYS[2], ARGV[1])
if old then
  local rev, bytes, count, workflow = string.match(old, '^(%d+) (%d+) (%d+) (%S+)$')
  if ARGV[3] ~= '1' and tonumber(rev) > tonumber(ARGV[2]) then return 0 end
  add_all(-bytes, -count, workflow)
  redis.call('HDEL', KEYS[2], ARGV[1])
  redis.call('ZREM', KEYS[1], ARGV[1])
  redis.call('ZREM', KEYS[1] .. ':' .. workflow, ARGV[1])
end
if ARGV[5] ~= '0' then
  redis.call('HSET', KEYS[2], ARGV[1], table.concat({ ARGV[2], ARGV[4], ARGV[5], ARGV[6] }, ' '))
  redis.call('ZADD', KEYS[1], ARGV[7], ARGV[1])
  redis.call('ZADD', KEYS[1] .. ':' .. ARGV[6], ARGV[7], ARGV[1])
  add_all(ARGV[4], ARGV[5], ARGV[6])
end
return 1
