-- Adds lines to the history without a commit. `at`: the index in ARGV of the number of lines, followed by the number of
-- elements and the elements. `keep`: lines of history to keep. For scripts with the keys of Span::All, followed by the
-- instances with unread entries if histories are followed.

local function add_lines(keep, at)
  local history = KEYS[9]
  for place = at + 2, #ARGV do call('RPUSH', history, ARGV[place]) end
  local lines = (tonumber(read('hn')) or 0) + tonumber(ARGV[at])
  -- As in write.lua.
  for _ = 1, 1000 do
    if lines <= keep then break end
    local oldest = tonumber(string.match(call('LINDEX', history, 0) or '', '^%d+'))
    if not oldest or lines - oldest < keep then break end
    call('LPOP', history)
    call('HINCRBY', K, 'hd', oldest)
    lines = lines - oldest
  end
  write('hn', lines)
  if KEYS[10] then call('ZADD', KEYS[10], 'NX', MILLIS, INST) end
end
