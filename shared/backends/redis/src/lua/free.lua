-- Returns the scopes without a holder; the others are checked again when their leases expire. KEYS: 1 the index of
-- ready scopes, then an instance for each of its members. ARGV: pairs of member and scope. Returns pairs of a position,
-- from 0, and a workflow.

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local free = {}
for at = 0, #KEYS - 2 do
  local member, scope = ARGV[2 * at + 1], ARGV[2 * at + 2]
  local found = redis.call('HMGET', KEYS[at + 2], 'l:' .. scope, 'lw')
  local till = tonumber(string.match(found[1] or '', '^%d+ (%d+) ')) or 0
  if till > now then
    redis.call('ZADD', KEYS[1], 'XX', till, member)
  else
    free[#free + 1] = at
    free[#free + 1] = string.match(found[2] or '', '^(.-)\1') or ''
  end
end
return free
