-- Creates an instance that begins without a correlation and without timers: the fast path of create.lua.
--
-- KEYS: 1 instance, 2 ready, 3 keys by which instances were started, 4 the listing of running instances by time, 5 by
-- workflow, 6 events that it consumed.
-- ARGV: 1 instance, 2 header, 3 record, 4 flags, 5 workflow, 6 version, 7 key ('' if none), 8 its retention ('' if its
-- definition has none), 9 the process that waits for the end ('' if none); then generation and digest of each event
-- that starts it.
-- Returns nothing, or the header of the instance that already exists.

local function main(KEYS, ARGV)
  local call = redis.call
  local K, INST, key, watcher = KEYS[1], ARGV[1], ARGV[7], ARGV[9]
  local found = call('HMGET', K, 's', 'h')
  if found[1] then return found[2] end
  local time = call('TIME')
  local micros = time[1] .. string.sub('00000' .. time[2], -6)
  local place = ARGV[5] .. '\1' .. micros .. '\1' .. ARGV[6] .. '\1' .. INST
  call('HSET', K, 's', 'r', 'h', ARGV[2], 'lw', place, 'r:r', ARGV[3], 'm:r', '0 ' .. ARGV[4] .. ' ' .. micros)
  if #ARGV[3] >= 1024 then call('HSET', K, 'z', string.format('%d', math.floor(#ARGV[3] / 1024))) end
  if key ~= '' then
    call('HSET', K, 'key', key)
    call('ZADD', KEYS[3], 0, key .. '\1' .. INST)
  end
  if ARGV[8] ~= '' then call('HSET', K, 'kp', ARGV[8]) end
  if watcher ~= '' then call('HSET', K, 'w', watcher) end
  for at = 10, #ARGV, 2 do call('ZADD', KEYS[6], ARGV[at], ARGV[at + 1]) end
  call('ZADD', KEYS[4], micros, INST)
  call('ZADD', KEYS[5], 0, place)
  -- An instance that can't continue without an input has nothing to do.
  if string.find(ARGV[4], 'g', 1, true) then call('ZADD', KEYS[2], 'LT', string.sub(micros, 1, -4), INST .. '/r') end
  return false
end
