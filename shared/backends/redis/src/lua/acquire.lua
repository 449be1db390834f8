-- ARGV: 4 lease in milliseconds, 5 the holder, 6 its attempt. KEYS: those of Span::Waits.
-- Returns { 'gone' }, { 'busy' } or { 'held', token, closed, parts of the instance, parts of the
-- record, items }.

if not STATUS or not is_there(SCOPE) then
  call('ZREM', READY, INST .. '/' .. SCOPE)
  return { 'gone' }
end
local lease = lease_of(SCOPE)
-- The same attempt again: its answer was lost on the way.
local again = lease and lease.holder == ARGV[5] and lease.attempt == ARGV[6]
if lease and lease.till > NOW and not again then return { 'busy' } end
local stands_still = frozen()
if stands_still and not has_operator(SCOPE) then return { 'busy' } end
local token = again and lease.token or string.format('%d', call('HINCRBY', K, 'n', 1))
local is_closed = closed(SCOPE)
ME = SCOPE
put_lease(SCOPE, {
  token = token, till = NOW + ARGV[4], told = is_closed and '1' or '0',
  holder = ARGV[5], attempt = ARGV[6],
})
if again then
  for _, item in ipairs(box_of(SCOPE)) do item[4] = '' end
end
local items = hand_out(SCOPE, token)
refresh(SCOPE)
local record
if marks_of(SCOPE) then
  record = { call('HGET', K, 'r:' .. SCOPE) }
else
  local name, _, index = branch_of(SCOPE)
  local fork = fork_of(name)
  record = { call('HGET', K, 'f:' .. name), fork.open, fork.needed, fork.told, fork.closed, index }
end
return { 'held', token, is_closed and 1 or 0, instance_parts(), record, items }
