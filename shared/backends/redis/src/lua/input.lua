-- Adds an input. ARGV: 4 id, 5 kind, 6 the input, 7 maximum number of waiting inputs, 8 the timer's sequence number or
-- ''. KEYS: those of Span::Waits. Returns 1 if it was added, 0 if not, or -n if n inputs are waiting already.

begin('n', 'x:' .. SCOPE, 't:' .. SCOPE)
if not STATUS or not is_there(SCOPE) or knows(SCOPE, ARGV[4]) then return 0 end
local size = #box_of(SCOPE)
if size >= tonumber(ARGV[7]) then return -size end
-- The timer has fired. It is not due again unless the engine rejects its input.
if ARGV[8] ~= '' and not disarm(SCOPE, ARGV[8]) then return 0 end
inbox_add(SCOPE, ARGV[4], ARGV[5], ARGV[6], true)
wake(SCOPE)
return 1
