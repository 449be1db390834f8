-- Hands a key that people call an instance by to another one, or gives it up.
--
-- KEYS: 1 the key. ARGV: 1 who has it ('' if nobody), 2 who is to have it; or 3 the instance that gives it up.
-- Returns 1, or 0: somebody else has it.

local found = redis.call('GET', KEYS[1]) or ''
if ARGV[3] then
  if string.match(found, '^%-?%d+ (.*)$') ~= ARGV[3] then return 0 end
  return redis.call('DEL', KEYS[1])
end
if found ~= ARGV[1] and found ~= ARGV[2] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1
