-- Records which instances consumed a kept event. KEYS: 1 bodies, 2 instances that consumed it, 3 known, 4 open. ARGV:
-- 1 event, 2 generation, 3 'claim': only if no other instance consumed it, 'had', 'free'; 4 the time, if the event is
-- acknowledged with this, or ''; then instances. Returns nothing if the event isn't kept any more; otherwise 1 if a
-- claim succeeded or no instance has consumed the event any more, else 0; 2 if the event is also acknowledged.

local body = redis.call('HGET', KEYS[1], ARGV[1])
if not body or string.match(body, '^%d+') ~= ARGV[2] then return false end
if ARGV[3] == 'claim' then
  local others = redis.call('SCARD', KEYS[2]) - redis.call('SISMEMBER', KEYS[2], ARGV[5])
  if others > 0 then return 0 end
end
for at = 5, #ARGV do
  redis.call(ARGV[3] == 'free' and 'SREM' or 'SADD', KEYS[2], ARGV[at])
end
-- As in acknowledge.lua, if no other process has recorded that the event starts something.
if ARGV[4] ~= '' and redis.call('HGET', KEYS[4], ARGV[1]) == ARGV[2] .. ' =' then
  redis.call('HDEL', KEYS[4], ARGV[1])
  redis.call('ZADD', KEYS[3], 'XX', 'GT', ARGV[4], ARGV[1])
  return 2
end
if ARGV[3] == 'free' and redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
return 1
