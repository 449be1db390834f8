-- Adds entries to the history that come from no commit. ARGV: 4 lines of history to keep, then lines of
-- history, and elements that hold them. KEYS: those of Span::All. Returns 1, or 0 if there is no such
-- instance.

begin('hn')
if not STATUS then return 0 end
local history, keep = KEYS[9], tonumber(ARGV[4])
for at = 7, #ARGV do call('RPUSH', history, ARGV[at]) end
local lines = (tonumber(read('hn')) or 0) + tonumber(ARGV[5])
-- As in commit.lua.
for _ = 1, 1000 do
  if lines <= keep then break end
  local oldest = tonumber(string.match(call('LINDEX', history, 0) or '', '^%d+'))
  if not oldest or lines - oldest < keep then break end
  call('LPOP', history)
  call('HINCRBY', K, 'hd', oldest)
  lines = lines - oldest
end
write('hn', lines)
return 1
