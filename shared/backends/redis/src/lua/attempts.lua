-- Counts attempts to drive a scope that may crash their workers. KEYS: 1 instance. ARGV: 1 scope, 2 the number to add,
-- or '' to clear all. Returns the number of attempts. They count for one revision of the scope: 'a:<scope>' is
-- "revision count".

local mark = redis.call('HGET', KEYS[1], 'm:' .. ARGV[1])
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local rev = mark and string.match(mark, '^%d+') or '0'
local field = 'a:' .. ARGV[1]
local known = redis.call('HGET', KEYS[1], field) or ''
local at, count = string.match(known, '^(%d+) (%d+)$')
count = (at == rev and ARGV[2] ~= '') and tonumber(count) or 0
if ARGV[2] ~= '' then count = count + tonumber(ARGV[2]) end
if count > 0 then
  redis.call('HSET', KEYS[1], field, rev .. ' ' .. count)
elseif known ~= '' then
  redis.call('HDEL', KEYS[1], field)
end
return math.max(count, 0)
