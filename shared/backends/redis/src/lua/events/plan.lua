-- Records the future index entries of an instance before they are written. KEYS: those of Span::Waits. ARGV from 4:
-- pairs of a wait's field (or '') and the note's field. Returns the mark, or nothing if a wait is over.

begin()
if not STATUS then return false end
for at = 4, #ARGV, 2 do
  if ARGV[at] ~= '' and call('HEXISTS', EVENTS, ARGV[at]) == 0 then return false end
end
for at = 5, #ARGV, 2 do call('HSETNX', EVENTS, ARGV[at], '0') end
dirty()
return MICROS
