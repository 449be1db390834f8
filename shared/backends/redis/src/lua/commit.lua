-- Applies one commit, all of it or nothing. ARGV: 4 token, 5 revision that was read, 6 record, 7 flags, 8 '1': the
-- scope is gone, 9 at, 10 history entries to keep, 11 letters: q only if there is nothing new, r give the lease back if
-- that loses nothing, 12 lease in milliseconds, 13 holder, 14 its attempt and 15 the stamp that was read, if the token
-- is 0: the holder read the scope without a lease (of a branch without a record, that of its fork), 16 the KiB that it adds at most, 17 those that the instance may
-- hold, 18 which key has the instances with unread entries ('' if histories are not followed), 19 which key has those with
-- recorded data, and 20 when the first of this commit's is due ('' if there is none); then counted lists: ids of consumed inputs; events that came too late (digests); timers that may be due again
-- (sequence, time, kind); lines of history, and elements that hold them; then commands. KEYS: those of Span::All; 10..
-- the listings, where a command needs them; last the index of attributes, if a command needs it. Returns { 'refused' }, { 'news' }, { 'full', the KiB that there is room for
-- } or { 'done', ids of effects, woken scopes, the mark if it is dirty, was given back, the token if the lease is taken
-- now or 0, if it is dirty what it waits for, and the parents of complete forks: name, number of results, bytes }. An effect's id comes with the instance that is to end, or '' where
-- the caller knows the effect.

begin('n', 'hn', 'z', 'x:' .. SCOPE, 't:' .. SCOPE, 'F:' .. SCOPE, 'b:' .. SCOPE, around(true))
OUTBOX, ENDED, HISTORY = KEYS[7], KEYS[8], KEYS[9]
cursor, effects, outbox, complete = 20, {}, nil, {}
ME = SCOPE
gone = ARGV[8] == '1'
local untaken = ARGV[4] == '0'
local lease = STATUS and lease_of(SCOPE)
if untaken then
  if lease and lease.holder == ARGV[13] and lease.attempt == ARGV[14] then
    -- It has been carried out already, and is repeated because its answer was lost.
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
  -- A record that says how it differs must mean this fork, not one of the same name that a failover lost.
  local means = string.match(ARGV[6], '^%["(%d+)"')
  if means then
    local name = branch_of(SCOPE)
    local fork = name and fork_of(name)
    stale = stale or not fork or fork.stamp ~= means
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
-- Events that came too late are free for others of the instance, with this commit.
for _ = 1, take_number() do
  if call('ZREM', HAD, take()) == 1 and waits() then
    call('HSET', EVENTS, 'F', MICROS)
    dirty()
  end
end
-- A scope that is gone at once, and isn't the root, needs no record.
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
-- A worker that continues could overtake effects that are still to be carried out.
local may = string.find(ARGV[11], 'r', 1, true) and (gone or #effects == 0)
if may and (untaken or not has_news(SCOPE, ARGV[4])) then
  if lease_of(SCOPE) then drop_lease(SCOPE) end
  released = 1
  -- An input that came meanwhile has its own message, but that may have been dropped already.
  if untaken and has_news(SCOPE, ARGV[4]) then woken[#woken + 1] = SCOPE end
elseif untaken then
  token = next_number()
  put_lease(SCOPE, {
    token = token, till = NOW + ARGV[12], notified = closed(SCOPE) and '1' or '0',
    holder = ARGV[13], attempt = ARGV[14],
  })
end
-- A scope that made progress isn't overdue. While it is held, its lease says so, and it stays in the index.
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
