-- Makes a coordinator the reader of the events, and stores its progress. KEYS: 1 the reader and its position. ARGV: 1
-- process, 2 milliseconds, or 0 to give up the role, 3 stream, or '' if there is no progress to store, 4 done up to, 5
-- when that event was published, 6 read up to. Returns { 0 } while another process reads; { 1 } if this one continues;
-- { 2, stream, done, at, read } if it begins, after the last stored position.

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local me, ttl = ARGV[1], tonumber(ARGV[2])
local process, till = unpack(redis.call('HMGET', KEYS[1], 'process', 'until'))
if process and process ~= me and tonumber(till) > now then return { 0 } end
local goes_on = process == me
if goes_on and ARGV[3] ~= '' then
  redis.call('HSET', KEYS[1], 'stream', ARGV[3], 'done', ARGV[4], 'at', ARGV[5], 'read', ARGV[6])
end
if ttl == 0 then
  if goes_on then redis.call('HDEL', KEYS[1], 'process', 'until') end
  return { 0 }
end
redis.call('HSET', KEYS[1], 'process', me, 'until', now + ttl)
if goes_on then return { 1 } end
local place = redis.call('HMGET', KEYS[1], 'stream', 'done', 'at', 'read')
return { 2, place[1] or '', place[2] or '', place[3] or '', place[4] or '' }
