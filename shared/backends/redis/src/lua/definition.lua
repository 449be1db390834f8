-- Returns a definition, or its size if it is large. KEYS: 1 the definitions. ARGV: 1 which, 2 how many bytes are large.

local size = redis.call('HSTRLEN', KEYS[1], ARGV[1])
if size >= tonumber(ARGV[2]) then return size end
return redis.call('HGET', KEYS[1], ARGV[1])
