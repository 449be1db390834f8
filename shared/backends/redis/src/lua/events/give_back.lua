-- An event is free for an instance again. KEYS: those of Span::Waits. ARGV: 4 event, 5 generation.
-- Returns 1, or 0: the instance hasn't had it.

local generation = call('ZSCORE', HAD, ARGV[4])
if not generation or tonumber(generation) ~= tonumber(ARGV[5]) then return 0 end
call('ZREM', HAD, ARGV[4])
if call('EXISTS', EVENTS) == 1 then
  call('HSET', EVENTS, 'F', MICROS)
  dirty()
end
return 1
