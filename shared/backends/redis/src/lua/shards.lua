-- Divides the shards among the live coordinators. KEYS: 1 processes by the expiry of their leases, 2 owners by shard.
-- ARGV: 1 process, 2 milliseconds, 3 number of shards. Returns the shards of this process. A process with more than its
-- share releases some. A process with fewer takes free ones, and more as the others release theirs.

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local me, total = ARGV[1], tonumber(ARGV[3])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if tonumber(ARGV[2]) > 0 then
  redis.call('ZADD', KEYS[1], now + ARGV[2], me)
else
  redis.call('ZREM', KEYS[1], me)
end
local living, place, count = {}, 0, 0
local processes = redis.call('ZRANGE', KEYS[1], 0, -1)
table.sort(processes)
for at, process in ipairs(processes) do
  living[process] = true
  count = count + 1
  if process == me then place = at end
end
local share = 0
if place > 0 then
  share = math.floor(total / count) + (place <= total % count and 1 or 0)
end
local owners = {}
local flat = redis.call('HGETALL', KEYS[2])
for at = 1, #flat, 2 do owners[flat[at]] = flat[at + 1] end
local mine = {}
for shard = 0, total - 1 do
  if owners[tostring(shard)] == me then mine[#mine + 1] = shard end
end
while #mine > share do
  redis.call('HDEL', KEYS[2], table.remove(mine))
end
for shard = 0, total - 1 do
  if #mine >= share then break end
  local owner = owners[tostring(shard)]
  if owner ~= me and not living[owner or ''] then
    redis.call('HSET', KEYS[2], shard, me)
    mine[#mine + 1] = shard
  end
end
table.sort(mine)
return mine
