-- Suspends or resumes an instance, and removes effects that an earlier change because of another instance left. ARGV:
-- 4 '1' to suspend, '0' to resume, 5 the effect that follows. KEYS: those of
-- Span::All, 10 suspended instances. Returns nothing if there is no such active instance, otherwise the id of the
-- effect, 1 if its waits have to be indexed again, and the scopes that have something to do.

begin('O', 'n')
if STATUS ~= 'r' then return false end
SUSPENDED = ARGV[4] == '1'
if SUSPENDED then
  write('p', '1')
  call('SADD', KEYS[10], INST)
else
  erase('p')
  call('SREM', KEYS[10], INST)
end
-- It had no room for an offer, which may be of a kept event.
local misses = not SUSPENDED and call('HEXISTS', EVENTS, 'F') == 1
if misses then dirty() end
local id = next_number()
local left = ''
for earlier in string.gmatch(read('O') or '', '%d+') do
  local effect = call('HGET', K, 'o:' .. earlier) or ''
  if string.find(effect, '{"FollowSuspended"', 1, true) == 1 then
    erase('o:' .. earlier)
  else
    left = left .. ' ' .. earlier
  end
end
write('o:' .. id, ARGV[5])
write('O', left .. ' ' .. id)
call('ZADD', KEYS[7], 'NX', MILLIS, INST)
local found = refresh_all(fields_of())
return { id, misses and 1 or 0, SUSPENDED and {} or found }
