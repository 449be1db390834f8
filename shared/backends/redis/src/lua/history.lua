-- KEYS: 1 instance, 2 its history. Returns the number of dropped lines, and the elements that are kept.

local answer = redis.call('LRANGE', KEYS[2], 0, -1)
table.insert(answer, 1, redis.call('HGET', KEYS[1], 'hd') or '0')
return answer
