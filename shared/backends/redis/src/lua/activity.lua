-- Counts the running instances of a shard. KEYS: 1 the listing of running instances, 2 the index of ready scopes, 3 the
-- suspended instances, then the hashes of some of these. ARGV: 1 how many entries of 2 to examine; then the instances
-- of these hashes, in order. Returns how many run, how many of them have something to do, and how many are suspended.
-- Instances that ended while suspended are still among the suspended ones; each call removes those that it examines.

for at = 2, #ARGV do
  local found = redis.call('HMGET', KEYS[at + 2], 's', 'p')
  if found[1] ~= 'r' or not found[2] then redis.call('SREM', KEYS[3], ARGV[at]) end
end
local seen, ready = {}, 0
for _, member in ipairs(redis.call('ZRANGE', KEYS[2], 0, ARGV[1] - 1)) do
  local instance = string.match(member, '^(.*)/')
  if instance and not seen[instance] then
    seen[instance] = true
    if redis.call('SISMEMBER', KEYS[3], instance) == 0 then ready = ready + 1 end
  end
end
-- Entries beyond the limit are counted by scope.
ready = ready + math.max(redis.call('ZCARD', KEYS[2]) - ARGV[1], 0)
return { redis.call('ZCARD', KEYS[1]), ready, redis.call('SCARD', KEYS[3]) }
