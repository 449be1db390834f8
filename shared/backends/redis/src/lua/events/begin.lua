-- Begins the ingestion of an event. KEYS: 1 known, 2 open, 3 kept, 4 bodies, 5 instances that consumed it, 6 sizes. ARGV:
-- 1 event, 2 time, 3 maximum number of known events, 4 its stored form or '', 5 a generation that is older (clocks of
-- servers differ, and kept events are delivered in this order), 6 the workflows that it starts by itself, as alone.rs
-- writes them, or '0', 7 for how many milliseconds an event is known, 8 its groups. Returns { 'duplicate' }, { 'done',
-- outcome }, or { 'open', generation, the record of an older event with the same name, the workflows that the first
-- ingestion starts by the event alone }. A generation is valid as long as the event is known or kept.

local event, body = ARGV[1], ARGV[4]
local groups = ARGV[8] ~= '' and ' ' .. ARGV[8] or ''
-- Open events are known. Nothing is written before this, so a server without memory recognizes duplicates.
local since = redis.call('ZSCORE', KEYS[1], event)
local open = since and redis.call('HGET', KEYS[2], event)
if since and not open and tonumber(since) >= tonumber(ARGV[2]) - tonumber(ARGV[7]) then return { 'duplicate' } end
if open then
  local generation, claims, outcome = string.match(open, '^(%d+) (%S+) ?(.*)$')
  if outcome ~= '' then return { 'done', outcome } end
  -- A process is ingesting it, or was. Ingestion begins again.
  body = body ~= '' and generation .. groups .. '\n' .. body
  if body and redis.call('HSETNX', KEYS[4], event, body) == 1 then
    redis.call('ZADD', KEYS[3], ARGV[2], event)
    count(KEYS[6], event, body, ARGV[2])
  end
  return { 'open', generation, false, claims }
end
local time = redis.call('TIME')
local generation = string.format('%d%06d', time[1], time[2])
local older = tonumber(ARGV[5])
if tonumber(generation) <= older then generation = string.format('%.0f', older + 1) end
redis.call('ZADD', KEYS[1], ARGV[2], event)
redis.call('HSET', KEYS[2], event, generation .. ' ' .. ARGV[6])
local surplus = redis.call('ZCARD', KEYS[1]) - ARGV[3]
if surplus > 0 then
  for _, old in ipairs(redis.call('ZRANGE', KEYS[1], 0, math.min(surplus, 100) - 1)) do
    redis.call('ZREM', KEYS[1], old)
    redis.call('HDEL', KEYS[2], old)
  end
end
local old = false
if body ~= '' then
  body = generation .. groups .. '\n' .. body
  if redis.call('HSETNX', KEYS[4], event, body) == 0 then
    old = redis.call('HGET', KEYS[4], event)
    uncount(KEYS[6], event, old)
    redis.call('HSET', KEYS[4], event, body)
    redis.call('DEL', KEYS[5])
  end
  redis.call('ZADD', KEYS[3], ARGV[2], event)
  count(KEYS[6], event, body, ARGV[2])
end
return { 'open', generation, old, ARGV[6] }
