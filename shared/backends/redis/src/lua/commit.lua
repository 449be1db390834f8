-- Applies a commit, all of it or nothing.
--
-- KEYS: those of Span::All; 10.. the listings, if a command needs them; last the index of attributes, if a command
-- needs it.
-- ARGV: 4 token, 5 revision that was read, 6 record, 7 flags, 8 '1' if the scope is gone, 9 time, 10 history entries to
-- keep, 11 letters: q apply only if there is nothing new, r release the lease if that loses nothing; 12 lease in
-- milliseconds, 13 holder, 14 its attempt; 15 the stamp that was read, if the token is 0, that is, if the scope was
-- read without a lease (for a branch without a record, the stamp of its fork); 16 the KiB that the commit adds at most,
-- 17 the limit of the instance in KiB, 18 the position of the key of instances with unread entries ('' if histories are
-- not followed), 19 that of instances with recorded data, 20 when the first recorded data of this commit expires ('' if
-- it has none); then counted lists: ids of consumed inputs; events that came too late (digests); timers that may be due
-- again (sequence, time, kind); lines of history, and the elements that contain them; then commands.
--
-- Returns { 'refused' }, { 'news' }, { 'full', the KiB that are left }, or { 'done', ids of effects, woken scopes, the
-- mark if the instance is dirty, whether the lease was released, the token of the lease that was taken or 0, the waits
-- if the instance is dirty, and the parents of complete forks: name, number of results, bytes }. The id of an effect
-- comes with the instance to end, or '' if the caller knows the effect.

begin('n', 'hn', 'z', 'x:' .. SCOPE, 't:' .. SCOPE, 'F:' .. SCOPE, 'b:' .. SCOPE, related_fields(true))
OUTBOX, ENDED, HISTORY = KEYS[7], KEYS[8], KEYS[9]
cursor, effects, outbox, complete = 20, {}, nil, {}
ME = SCOPE
gone = ARGV[8] == '1'
local untaken = ARGV[4] == '0'
local lease = STATUS and lease_of(SCOPE)
if untaken then
  if lease and lease.holder == ARGV[13] and lease.attempt == ARGV[14] then
    -- The commit was carried out already, and is repeated because its response was lost.
    drop_lease(SCOPE)
    refresh(SCOPE)
    return { 'refused' }
  end
  if not STATUS or is_paused() or lease and lease.till > NOW then return { 'refused' } end
elseif not lease or lease.token ~= ARGV[4] then
  return { 'refused' }
end
if string.find(ARGV[11], 'q', 1, true) then
  local notified = closed(SCOPE) and '1' or '0'
  if is_paused() or lease.notified ~= notified or has_news(SCOPE, ARGV[4]) then return { 'news' } end
end
do
  local mark = marks_of(SCOPE)
  local rev = ARGV[5]
  local stale
  if mark then
    stale = mark.rev ~= rev or untaken and mark.stamp ~= ARGV[15]
  else
    stale = rev ~= '0' or not unborn(SCOPE)
    if not stale and untaken and ARGV[15] ~= '0' then stale = fork_of((branch_of(SCOPE))).stamp ~= ARGV[15] end
  end
  -- A record with a difference must refer to this fork, not to one with the same name that a failover lost.
  local base = string.match(ARGV[6], '^%["(%d+)"')
  if base then
    local name = branch_of(SCOPE)
    local fork = name and fork_of(name)
    stale = stale or not fork or fork.stamp ~= base
  end
  if stale or not gone and closed(SCOPE) then
    -- Nothing waits for this lease to expire, so it is released at once.
    if not untaken then
      drop_lease(SCOPE)
      refresh(SCOPE)
    end
    return { 'refused' }
  end
end

local adds = tonumber(ARGV[16])
if adds > 0 then
  local before, consumed, ids = kib_of('r:' .. SCOPE), 0, {}
  for at = 22, 21 + tonumber(ARGV[21]) do ids[ARGV[at]] = true end
  for _, item in ipairs(box_of(SCOPE)) do
    if ids[item[2]] then consumed = consumed + kib_of_item(SCOPE, item) end
  end
  local others = math.max((tonumber(read('z')) or 0) - before - consumed, 0)
  local most = tonumber(ARGV[17])
  if adds > before and others + adds > most then
    return { 'full', string.format('%d', math.max(most - others, before)) }
  end
end

local had_work = has_work(SCOPE)
local fired = consume()
-- Events that came too late are available to other scopes of the instance after this commit.
for _ = 1, take_number() do
  if call('ZREM', HAD, take()) == 1 and waits() then
    call('HSET', EVENTS, 'F', MICROS)
    dirty()
  end
end
-- A scope that is gone at once needs no record, unless it is the root.
if not gone or SCOPE == 'r' then put_scope(SCOPE, ARGV[6], ARGV[5] + 1, ARGV[7]) end
for _ = 1, take_number() do
  local seq, due, kind = take(), take(), take()
  if fired[seq] then arm(SCOPE, seq, due, kind) end
end
local lines, elements = take_number(), take_number()
if lines > 0 then
  for _ = 1, elements do call('RPUSH', HISTORY, take()) end
  lines = (tonumber(read('hn')) or 0) + lines
  local keep = tonumber(ARGV[10])
  -- As in write.lua.
  for _ = 1, 1000 do
    if lines <= keep then break end
    local oldest = tonumber(string.match(call('LINDEX', HISTORY, 0) or '', '^%d+'))
    if not oldest or lines - oldest < keep then break end
    call('LPOP', HISTORY)
    call('HINCRBY', K, 'hd', oldest)
    lines = lines - oldest
  end
  write('hn', lines)
  if ARGV[18] ~= '' then call('ZADD', KEYS[tonumber(ARGV[18])], 'NX', ARGV[9], INST) end
  if ARGV[19] ~= '' then call('ZADD', KEYS[tonumber(ARGV[19])], 'LT', ARGV[20], INST) end
end
while ARGV[cursor + 1] do commands[take()]() end
if gone then
  if SCOPE == 'r' then empty_scope(SCOPE) else remove_scope(SCOPE) end
end
local released, token = 0, 0
-- If the worker continued, it could overtake effects that haven't been carried out.
local may = string.find(ARGV[11], 'r', 1, true) and (gone or #effects == 0)
if may and (untaken or not has_news(SCOPE, ARGV[4])) then
  if lease_of(SCOPE) then drop_lease(SCOPE) end
  released = 1
  -- An input that arrived meanwhile has its own task, but that may already have been dropped.
  if untaken and has_news(SCOPE, ARGV[4]) then woken[#woken + 1] = SCOPE end
elseif untaken then
  token = next_number()
  put_lease(SCOPE, {
    token = token, till = NOW + ARGV[12], notified = closed(SCOPE) and '1' or '0',
    holder = ARGV[13], attempt = ARGV[14],
  })
end
-- A scope that made progress isn't overdue. While it is held, it stays in the index, and its lease says so.
if refresh(SCOPE) and (released == 1 or not had_work) then
  ready[INST .. '/' .. SCOPE] = nil
  call('ZADD', READY, MILLIS, INST .. '/' .. SCOPE)
end
if outbox then
  write('O', outbox)
  call('ZADD', OUTBOX, 'NX', MILLIS, INST)
end
-- Saves a second request for the instance's waits when they are indexed.
local fields = is_dirty == 1 and call('HGETALL', EVENTS) or {}
return { 'done', effects, woken, is_dirty == 1 and MICROS or '', released, token, fields, complete }
