-- Creates an instance that has already run to its end. The result is the same as that of start.lua and the commit that
-- ends the instance.
--
-- KEYS: 1 instance, 2 history, 3 keys by which instances were started, 4 ended, 5 the listing of its status by time, 6
-- by workflow, 7 outbox; 8 the index of attributes, if it has any or histories are followed, 9 instances with unread
-- entries, if histories are followed.
-- ARGV: 1 instance, 2 header, 3 record, 4 flags, 5 workflow, 6 version, 7 key ('' if none), 8 its retention ('' if its
-- definition has none), 9 status, 10 output, 11 error ('' if none), 12 time of the end, 13 lines of history, 14 number
-- of elements that contain them, 15.. the elements; then the number of effects, and the effects; then its search
-- attributes, if any, as in attributes.rs.
-- Returns nothing, or the number of the first effect (the others follow it), or the header of the instance that already
-- exists.

local function main(KEYS, ARGV)
  local call = redis.call
  local K, INST, key = KEYS[1], ARGV[1], ARGV[7]
  local found = call('HMGET', K, 's', 'h')
  if found[1] then return found[2] end
  local time = call('TIME')
  local micros = time[1] .. string.sub('00000' .. time[2], -6)
  local place = ARGV[5] .. '\1' .. micros .. '\1' .. ARGV[6] .. '\1' .. INST
  local set = {
    'HSET', K, 's', ARGV[9], 'h', ARGV[2], 'lw', place, 'r:r', ARGV[3], 'm:r', '1 ' .. ARGV[4] .. ' ' .. micros,
    'end', ARGV[12],
  }
  local n = 14
  if #ARGV[3] >= 1024 then
    set[n + 1], set[n + 2] = 'z', string.format('%d', math.floor(#ARGV[3] / 1024))
    n = n + 2
  end
  if key ~= '' then
    set[n + 1], set[n + 2] = 'key', key
    n = n + 2
    call('ZADD', KEYS[3], 0, key .. '\1' .. INST)
  end
  if ARGV[10] ~= '' then
    set[n + 1], set[n + 2] = 'out', ARGV[10]
    n = n + 2
  end
  if ARGV[11] ~= '' then
    set[n + 1], set[n + 2] = 'err', ARGV[11]
    n = n + 2
  end
  if ARGV[13] ~= '0' then
    set[n + 1], set[n + 2] = 'hn', ARGV[13]
    n = n + 2
  end
  local at = 15 + ARGV[14]
  local effects, first = tonumber(ARGV[at]), false
  if effects > 0 then
    local outbox, number = '', nil
    first = 16 * string.sub(micros, 1, -4)
    for effect = 1, effects do
      number = string.format('%.0f', first + effect - 1)
      outbox = outbox .. ' ' .. number
      set[n + 1], set[n + 2] = 'o:' .. number, ARGV[at + effect]
      n = n + 2
    end
    set[n + 1], set[n + 2], set[n + 3], set[n + 4] = 'O', outbox, 'n', number
    n = n + 4
    call('ZADD', KEYS[7], 'NX', string.sub(micros, 1, -4), INST)
  end
  local found_by = ARGV[at + effects + 1]
  if found_by then
    set[n + 1], set[n + 2] = 'at', found_by
    n = n + 2
    local tail = '\1' .. micros .. '\1' .. INST
    for head in string.gmatch(found_by, '[^%z]+') do call('ZADD', KEYS[8], 0, head .. tail) end
  end
  -- As in retention.rs.
  local ended = ARGV[12]
  if ARGV[8] ~= '' then
    set[n + 1], set[n + 2] = 'kp', ARGV[8]
    local keep = string.match(ARGV[8], ARGV[9] .. '(%d+)')
    if keep then ended = string.format('%.0f', 4e15 + ended + keep) end
  end
  call(unpack(set))
  call('ZADD', KEYS[5], micros, INST)
  call('ZADD', KEYS[6], 0, place)
  call('ZADD', KEYS[4], ended, INST)
  if KEYS[9] and ARGV[13] ~= '0' then call('ZADD', KEYS[9], 'NX', ARGV[12], INST) end
  for element = 15, at - 1 do call('RPUSH', KEYS[2], ARGV[element]) end
  return first
end
