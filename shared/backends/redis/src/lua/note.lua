-- Adds entries to the history that come from no commit. ARGV: 4 lines of history to keep, then lines of
-- history, and elements that hold them. KEYS: those of Span::All. Returns 1, or 0 if there is no such
-- instance.

begin('hn')
if not STATUS then return 0 end
add_lines(tonumber(ARGV[4]), 5)
return 1
