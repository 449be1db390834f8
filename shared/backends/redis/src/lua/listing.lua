-- The listings, by time and by workflow for each status. For scripts whose last keys are the listings.

local STATUS_PLACE = { r = 1, c = 2, f = 3, x = 4, t = 5 }

-- `first`: the position of the first key of the listings.
local function list_keys(first, status)
  local place = STATUS_PLACE[status]
  return KEYS[first + place - 1], KEYS[first + place + 4]
end

-- `place` is <workflow>\1<time in microseconds>\1<version>\1<instance>.
local function list_add(first, status, place)
  local by_time, by_workflow = list_keys(first, status)
  call('ZADD', by_time, string.match(place, '\1(%d+)\1'), INST)
  call('ZADD', by_workflow, 0, place)
end

local function list_remove(first, status, place)
  local by_time, by_workflow = list_keys(first, status)
  call('ZREM', by_time, INST)
  call('ZREM', by_workflow, place)
end
