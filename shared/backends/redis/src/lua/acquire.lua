-- Acquires a scope. ARGV: 4 lease in milliseconds, 5 the holder, 6 its attempt. KEYS: those of Span::Ready.
-- Returns { 'gone' }, { 'busy' } or { 'held', token, closed, header, parts of the record, items }.

begin('n', 'h', 'r:' .. SCOPE, related_fields())
if not STATUS or not is_there(SCOPE) then
  ready[INST .. '/' .. SCOPE] = false
  return { 'gone' }
end
local lease = lease_of(SCOPE)
-- This is the same attempt again, because its response was lost.
local again = lease and lease.holder == ARGV[5] and lease.attempt == ARGV[6]
if lease and lease.till > NOW and not again then return { 'busy' } end
local stands_still = is_paused()
if stands_still and not has_operator(SCOPE) then return { 'busy' } end
local token = again and lease.token or next_number()
local is_closed = closed(SCOPE)
ME = SCOPE
put_lease(SCOPE, {
  token = token, till = NOW + ARGV[4], notified = is_closed and '1' or '0',
  holder = ARGV[5], attempt = ARGV[6],
})
if again then
  for _, item in ipairs(box_of(SCOPE)) do item[4] = '' end
end
local items = hand_out(SCOPE, token)
local record
if marks_of(SCOPE) then
  record = { read('r:' .. SCOPE) }
  -- The record contains only the difference from its fork.
  if string.byte(record[1]) == 91 then
    local name = branch_of(SCOPE)
    record = { record[1], stamp_of(fork_of(name)), read('f:' .. name) }
  end
else
  local name, _, index = branch_of(SCOPE)
  local fork = fork_of(name)
  record = { read('f:' .. name), stamp_of(fork), fork.open, fork.needed, fork.notified, fork.closed, index }
end
return { 'held', token, is_closed and 1 or 0, read('h'), record, items }
