-- Gives a business key to another instance, or releases it.
--
-- KEYS: 1 the key. ARGV: 1 its current holder ('' if none), 2 its new holder; or 3 the instance that releases it.
-- Returns 1, or 0 if another instance holds the key.

local found = redis.call('GET', KEYS[1]) or ''
if ARGV[3] then
  if string.match(found, '^%-?%d+ (.*)$') ~= ARGV[3] then return 0 end
  return redis.call('DEL', KEYS[1])
end
if found ~= ARGV[1] and found ~= ARGV[2] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1
