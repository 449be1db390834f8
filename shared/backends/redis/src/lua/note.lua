-- Adds entries to the history without a commit. ARGV: 4 lines of history to keep, then lines of history, and the
-- elements that contain them. KEYS: those of Span::All. Returns 1, or 0 if the instance doesn't exist.

begin('hn')
if not STATUS then return 0 end
add_lines(tonumber(ARGV[4]), 5)
return 1
