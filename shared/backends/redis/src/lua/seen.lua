-- The processes that are remembered. KEYS: as of processes.lua. Returns for each the time of its last sign of life and
-- its description, the one that was silent for longest first.

local all = {}
local flat = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
for at = 1, #flat, 2 do
  local description = redis.call('HGET', KEYS[2], flat[at])
  if description then
    all[#all + 1] = flat[at + 1]
    all[#all + 1] = description
  end
end
return all
