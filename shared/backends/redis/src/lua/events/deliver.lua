-- Delivers an event to a wait, or offers it the event. KEYS: those of Span::Waits. ARGV: 4 the wait's field, 5 its
-- required value, 6 its new value ('' if it is over), 7 event; for an offer, event and wait (waiting.rs), 8 generation,
-- negative for an offer of an event that isn't kept, 9 the generation up to which consumed events are forgotten, 10 id
-- and 11 payload of the input, 12 the limit on the size of the instance in KiB, or 0, 13 the limit on the number of inputs
-- in an inbox, 14 number of fields to read of the scope, then these; then number of values that the
-- instance must have, names and values ('': unknown); then number, names and values of those that it learns; then notes
-- of its future index entries, as in plan.lua.
-- Returns { 'gone' }, { 'had' }, { 'changed' }, { 'known' }, { 'full' } or { 'done', mark or '', scopes, fields of the
-- waits, values }.
-- The values are those of the scope, of the input, and of the ids of consumed inputs and the scope's forks; none if
-- they aren't all that its next turn needs, or are large.

-- The maximum size of the instance in KiB, and of the header and of the values in bytes. The caller keeps them for a
-- moment.
local SIZE_MAX = 8
local HEADER_MAX = 4096
local VALUES_MAX = 8192
-- How many offers of events that aren't kept are noted. Only a repeated delivery looks for them.
local OFFERS_MAX = 1000

-- As in `Input::id`.
local is_offer = string.sub(ARGV[10], 1, 6) == 'offer-'
begin('n', 'x:' .. SCOPE, 'z')
if not STATUS then return { 'gone' } end
local generation = call('ZSCORE', HAD, ARGV[7])
if generation and tonumber(generation) == tonumber(ARGV[8]) then return { 'had' } end
if call('HGET', EVENTS, ARGV[4]) ~= ARGV[5] then return { 'changed' } end
local reads = tonumber(ARGV[14])
local at = 16 + reads
for _ = 1, tonumber(ARGV[15 + reads]) do
  local value = call('HGET', EVENTS, 'c:' .. ARGV[at])
  if (value and '=' .. value or '') ~= ARGV[at + 1] then return { 'changed' } end
  at = at + 2
end
if is_offer and is_paused() then
  -- Nobody takes it out of the inbox.
  local limit, size = tonumber(ARGV[12]), tonumber(read('z') or 0) + kib(#ARGV[11])
  if limit > 0 and size > limit or #box_of(SCOPE) >= tonumber(ARGV[13]) then
    -- When it is resumed, its waits search for kept events again.
    call('HSET', EVENTS, 'F', MICROS)
    return { 'full' }
  end
end
if inbox_add(SCOPE, ARGV[10], is_offer and 'k' or 'e', ARGV[11], true) == 0 then return { 'known' } end
-- A tenth of the deliveries is enough.
if string.sub(ARGV[8], -1) == '0' then
  call('ZREMRANGEBYSCORE', HAD, 0, ARGV[9])
  -- The newest have the lowest scores.
  local offers = call('ZCOUNT', HAD, '-inf', '(0')
  if offers > OFFERS_MAX then call('ZREMRANGEBYRANK', HAD, OFFERS_MAX, offers - 1) end
end
call('ZADD', HAD, ARGV[8], ARGV[7])
if ARGV[6] == '' then
  call('HDEL', EVENTS, ARGV[4])
elseif not is_offer then
  call('HSET', EVENTS, ARGV[4], ARGV[6])
end
local learnt = tonumber(ARGV[at])
at = at + 1
for _ = 1, learnt do
  call('HSETNX', EVENTS, 'c:' .. ARGV[at], ARGV[at + 1])
  at = at + 2
end
for note = at, #ARGV do call('HSETNX', EVENTS, ARGV[note], '0') end
-- An offer changes no wait.
local mark = is_offer and (call('ZSCORE', DIRTY, INST) or '') or MICROS
if not is_offer then dirty() end
wake(SCOPE)
local values, box = {}, box_of(SCOPE)
local is_small = tonumber(read('z') or 0) <= SIZE_MAX
if reads > 0 and is_small and #box == 1 and not lease_of(SCOPE) and not is_paused()
  and call('HSTRLEN', K, 'h') <= HEADER_MAX then
  local names = { unpack(ARGV, 15, 14 + reads) }
  for _, name in ipairs({ 'i:' .. SCOPE .. ':' .. box[1][1], 'x:' .. SCOPE, 'F:' .. SCOPE }) do
    names[#names + 1] = name
  end
  flush()
  values = call('HMGET', K, unpack(names))
  local size = 0
  for place = 1, #names do size = size + #(values[place] or '') end
  if size > VALUES_MAX then values = {} end
end
return { 'done', mark, woken, call('HGETALL', EVENTS), values }
