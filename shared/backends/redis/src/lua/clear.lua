-- Removes ended instances of the usual kind, which have only their record and outcome left. All others are left to
-- remove.lua.
--
-- KEYS: 1 ended, 2 dirty, 3 ready, 4 outbox, 5 keys by which instances were started, 6.. the listings, 16 the index of
-- attributes, 17 instances with unread entries; then for each instance: itself, its waits, consumed events, history.
-- ARGV: 1 '1' if histories are followed; then pairs of an instance and its greatest position in the index of ended
-- instances. Returns the positions of the instances that were not removed.

local PLACES = { c = 2, f = 3, x = 4, t = 5 }
local PLAIN = {
  s = true, h = true, n = true, w = true, lw = true, key = true, hn = true,
  out = true, err = true, ['end'] = true, ['m:r'] = true, ['r:r'] = true, z = true, at = true, kp = true, le = true,
}
-- The number of names above. When this is loaded, no function can count them yet.
local MOST = 16
local LISTINGS, ATTRIBUTES, UNREAD, OWN = 6, 16, 17, 18

local function is_plain(K, waits, dirty, id, before, found, listed)
  local status, ended, place, mark = found[1], found[2], found[3], found[5]
  if not PLACES[status] or not ended or not place or not mark then return false end
  -- As in retention.rs.
  local keep = found[6] and string.match(found[6], status .. '(%d+)')
  if keep then ended = 4e15 + ended + keep end
  if tonumber(ended) > tonumber(before) then return false end
  -- The root scope must have ended, unless the instance is faulted.
  if status ~= 'f' and not string.find(mark, '^%d+ %a*e') then return false end
  -- A faulted instance must have no waits, and must be among the faulted ones in the index.
  if status == 'f' and redis.call('EXISTS', waits) == 1 then return false end
  if status == 'f' and (tonumber(redis.call('ZSCORE', listed, id)) or 0) >= 0 then return false end
  if redis.call('HLEN', K) > MOST then return false end
  local is_searched = false
  for _, field in ipairs(redis.call('HKEYS', K)) do
    if not PLAIN[field] then return false end
    if field == 'at' then is_searched = true end
  end
  return not redis.call('ZSCORE', dirty, id), is_searched
end

local function main(keys, argv)
  local left = {}
  local ended, ready, outbox, starts = { 'ZREM', keys[1] }, { 'ZREM', keys[3] }, { 'ZREM', keys[4] }, { 'ZREM', keys[5] }
  local gone, listed, searched = { 'DEL' }, {}, { 'ZREM', keys[ATTRIBUTES] }
  local is_followed, unread = argv[1] == '1', { 'ZREM', keys[UNREAD] }
  for at = 1, (#argv - 1) / 2 do
    local id, own = argv[2 * at], OWN + 4 * (at - 1)
    local found = redis.call('HMGET', keys[own], 's', 'end', 'lw', 'key', 'm:r', 'kp')
    local plain, is_searched = is_plain(keys[own], keys[own + 1], keys[2], id, argv[2 * at + 1], found, keys[1])
    if plain and is_followed and redis.call('ZSCORE', keys[UNREAD], id) then plain = false end
    if plain then
      ended[#ended + 1] = id
      outbox[#outbox + 1] = id
      unread[#unread + 1] = id
      ready[#ready + 1] = id .. '/r'
      if is_searched then
        local tail = '\1' .. string.match(found[3], '\1(%d+)\1') .. '\1' .. id
        for head in string.gmatch(redis.call('HGET', keys[own], 'at'), '[^%z]+') do
          searched[#searched + 1] = head .. tail
        end
      end
      if found[4] then starts[#starts + 1] = found[4] .. '\1' .. id end
      local place = PLACES[found[1]]
      local lists = listed[place]
      if not lists then
        lists = { { 'ZREM', keys[LISTINGS + place - 1] }, { 'ZREM', keys[LISTINGS + place + 4] } }
        listed[place] = lists
      end
      lists[1][#lists[1] + 1] = id
      lists[2][#lists[2] + 1] = found[3]
      for key = own, own + 3 do gone[#gone + 1] = keys[key] end
    else
      left[#left + 1] = at
    end
  end
  if not gone[2] then return left end
  for _, lists in pairs(listed) do
    redis.call(unpack(lists[1]))
    redis.call(unpack(lists[2]))
  end
  if searched[3] then redis.call(unpack(searched)) end
  if starts[3] then redis.call(unpack(starts)) end
  redis.call(unpack(ended))
  redis.call(unpack(outbox))
  if not is_followed then redis.call(unpack(unread)) end
  redis.call(unpack(ready))
  redis.call(unpack(gone))
  return left
end
