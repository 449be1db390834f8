-- Replaces elements of a history that haven't changed since they were read. KEYS: 1 history. ARGV: for each element its
-- position from the end, the element that was read, and the new one. Returns how many were replaced.

local done = 0
for at = 1, #ARGV, 3 do
  if redis.call('LINDEX', KEYS[1], ARGV[at]) == ARGV[at + 1] then
    redis.call('LSET', KEYS[1], ARGV[at], ARGV[at + 2])
    done = done + 1
  end
end
return done
