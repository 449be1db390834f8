-- Replaces elements of a history that are still as they were read. KEYS: 1 history. ARGV: of each element its place from
-- the end, the element as it was read, and the new one. Returns how many were replaced.

local done = 0
for at = 1, #ARGV, 3 do
  if redis.call('LINDEX', KEYS[1], ARGV[at]) == ARGV[at + 1] then
    redis.call('LSET', KEYS[1], ARGV[at], ARGV[at + 2])
    done = done + 1
  end
end
return done
