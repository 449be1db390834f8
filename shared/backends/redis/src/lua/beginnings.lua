-- Returns fields of a hash. KEYS: 1 the hash. ARGV: 1 how many bytes are returned of 2 how many of the fields; then the
-- fields.

local parts = redis.call('HMGET', KEYS[1], unpack(ARGV, 3))
for at = 1, tonumber(ARGV[2]) do
  if parts[at] then parts[at] = string.sub(parts[at], 1, ARGV[1]) end
end
return parts
