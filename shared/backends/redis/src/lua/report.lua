-- Writes the most frequent end of a branch: it had no record, and reports its result. It does what write.lua does, with
-- less that Redis and Lua have to take apart: the names of fields follow from the scope.
--
-- KEYS: 1 instance, 2 history, 3 ready. ARGV: 1 the scope, 2 the result, 3 an element of history, 4 the numbers of
-- `BRANCH`, 5 the scope's member of the index of ready scopes, 6 the time in milliseconds. Returns what write.lua
-- returns.

-- The lengths of the names of its fork and its parent; whether it is probably the last branch; whether it is done (1) or
-- has failed (2); its index; when its fork was made, or 0; the number of lines of the element, and of lines to keep.
local BRANCH = '>BBBBI4I8I4I8'

local function main(KEYS, ARGV)
  begin_commit()
  local K, scope, member = KEYS[1], ARGV[1], ARGV[5]
  local to_fork, to_parent, is_last, result, index, made, lines, keep = decode(BRANCH, ARGV[4])
  local name, parent = sub(scope, 1, to_fork), sub(scope, 1, to_parent)
  local field, report, box = 'g:' .. name, 'b:' .. scope, 'q:' .. parent
  local found
  if is_last == 1 then
    found = call('HMGET', K, 's', 'hn', field, report, 'm:' .. scope, 'l:' .. scope, 'q:' .. scope, 'p', 'l:' .. parent, box)
  else
    found = call('HMGET', K, 's', 'hn', field, report, 'm:' .. scope, 'l:' .. scope, 'q:' .. scope, 'p')
  end
  if found[1] ~= 'r' or found[4] or found[5] or found[6] or found[7] or found[8] then return false end
  local fork, grown, notifications, done, results, bytes =
    counted(found[3], index, 0, made, result, #ARGV[2], false)
  if not fork then return false end

  -- Everything was checked, and from here on it writes.
  lines = lines + (found[2] or 0)
  call('RPUSH', KEYS[2], ARGV[3])
  if lines > keep then lines = trim(K, KEYS[2], lines, keep) end
  if grown ~= 0 then weigh(K, call('HGET', K, 'z'), grown) end
  call('ZREM', KEYS[3], member)
  lines = format('%d', lines)
  if not notifications then
    call('HSET', K, report, ARGV[2], field, fork, 'hn', lines)
    return 1
  end
  local lease, before = found[9], found[10]
  if is_last == 0 then lease, before = unpack(call('HMGET', K, 'l:' .. parent, box)) end
  local number, after, place, input = notification(parent, sub(name, to_parent + 2), before, notifications, done)
  call('HSET', K, report, ARGV[2], field, fork, 'hn', lines, box, after, place, input)
  local parent_member = sub(member, 1, #member - #scope + to_parent)
  call('ZADD', KEYS[3], 'LT', ARGV[6], parent_member)
  if lease then notify(namespace_of(K), lease, parent_member) end
  return complete(results, bytes, number)
end
