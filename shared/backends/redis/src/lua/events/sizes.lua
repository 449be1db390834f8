-- The sizes of kept events, of all and of each group. The first line of a record names its groups behind the generation.
-- `sizes`: the key of the sizes.

local function each_group(record, visit)
  for group in string.gmatch(string.match(record, '^[^\n]*'), ' (%S+)') do visit(group) end
end

local function count(sizes, event, record, time)
  local is_first = true
  each_group(record, function(group)
    if is_first then redis.call('HINCRBY', sizes, 'all', #record) end
    is_first = false
    redis.call('HINCRBY', sizes, group, #record)
    redis.call('ZADD', sizes .. ':' .. group, time, event)
  end)
end

local function uncount(sizes, event, record)
  local function less(group)
    if redis.call('HINCRBY', sizes, group, -#record) <= 0 then redis.call('HDEL', sizes, group) end
  end
  local is_first = true
  each_group(record, function(group)
    if is_first then less('all') end
    is_first = false
    less(group)
    redis.call('ZREM', sizes .. ':' .. group, event)
  end)
end
