-- Reads or removes effects of an instance. KEYS: 1 instance, 2 the shard's outbox. ARGV: 1 instance, then ids of the
-- effects that were carried out. Without ids, returns ids and effects of the remaining ones.

local gone = {}
for at = 2, #ARGV do gone[ARGV[at]] = true end
local left, answer, fields = {}, {}, {}
for id in string.gmatch(redis.call('HGET', KEYS[1], 'O') or '', '%d+') do
  if gone[id] then
    fields[#fields + 1] = 'o:' .. id
  else
    left[#left + 1] = id
    if #ARGV == 1 then
      answer[#answer + 1] = id
      answer[#answer + 1] = redis.call('HGET', KEYS[1], 'o:' .. id)
    end
  end
end
if #left == 0 then
  fields[#fields + 1] = 'O'
  redis.call('ZREM', KEYS[2], ARGV[1])
elseif #ARGV > 1 then
  redis.call('HSET', KEYS[1], 'O', table.concat(left, ' '))
end
for at = 1, #fields, 1000 do
  redis.call('HDEL', KEYS[1], unpack(fields, at, math.min(at + 999, #fields)))
end
return answer
