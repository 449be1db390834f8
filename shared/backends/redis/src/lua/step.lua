-- Writes the most frequent commit: a scope with a record goes on or waits, and nothing else changes. It does what
-- write.lua does, with less that Redis and Lua have to take apart: the names of fields follow from the scope.
--
-- KEYS: 1 instance, 2 history, 3 ready. ARGV: 1 the scope, 2 its lease, or '', 3 its marks, 4 the new ones, 5 the
-- record, 6 an element of history, 7 its number of lines and the number of lines to keep (`COUNTS`), 8 the scope's
-- member of the index of ready scopes, if it leaves the index. Returns 1, or false if nothing was written.

local COUNTS = '>I4I8'

local function main(KEYS, ARGV)
  begin_commit()
  local K, scope = KEYS[1], ARGV[1]
  local marks = 'm:' .. scope
  local found = call('HMGET', K, 's', marks, 'l:' .. scope, 'q:' .. scope, 'p', 'hn')
  if found[1] ~= 'r' or found[2] ~= ARGV[3] or (found[3] or '') ~= ARGV[2] or found[4] or found[5] then return false end
  local lines, keep = decode(COUNTS, ARGV[7])
  lines = lines + (found[6] or 0)
  call('RPUSH', KEYS[2], ARGV[6])
  if lines > keep then lines = trim(K, KEYS[2], lines, keep) end
  call('HSET', K, 'r:' .. scope, ARGV[5], marks, ARGV[4], 'hn', format('%d', lines))
  if ARGV[8] then call('ZREM', KEYS[3], ARGV[8]) end
  return 1
end
