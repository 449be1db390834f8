-- Writes the changes of a commit like write.lua (`write_guarded`), and then what follows from them for other scopes.
-- Branches come and go without changing what the commit was computed from, so what there is to do is found here: it is
-- done for all that is left of a fork or of the instance.
--
-- The facts have, as the last of the rare ones: {
--   positions in KEYS of timers, of dirty instances and of the consumed events,
--   the scope,
--   forks to close: their branches that have begun are cancelled, the others will never begin,
--   whether all other forks are closed too, since the instance is over; those of detached scopes stay open,
--   whether the scopes of the instance may have become ready or not,
--   [the closed fork of a branch that is gone: it is removed with its last branch]
-- }
--
-- Returns false if nothing was written, otherwise what write.lua returns, always as a list, and at its end the scopes
-- that were cancelled, then, if all may have become ready, those that have something to do.

local function follow(closes, is_over, refreshes, prunes)
  begin()
  ME = SCOPE
  for _, name in ipairs(closes) do close_fork(name) end
  if is_over then
    local open = {}
    for _, field in ipairs(fields_of()) do
      local name = string.match(field, '^g:(.+)$')
      if name and closed(string.match(name, '^(.+)%.%d+$')) then open[#open + 1] = name end
    end
    table.sort(open)
    for _, name in ipairs(open) do close_fork(name) end
  end
  if prunes then prune_fork(prunes) end
  local cancelled, found = woken, refreshes and refresh_all(fields_of()) or {}
  return { cancelled, found }
end

local function main(keys, argv)
  local more = cmsgpack.unpack(argv[1])[9]
  local timers, dirties, had, scope, closes, is_over, refreshes, prunes = unpack(more[16][5], 1, 8)
  local answer = write_guarded(keys, argv)
  if not answer then return false end
  local first, mark, all = '', '', {}
  if type(answer) == 'table' then answer, first, mark, all = unpack(answer, 1, 4) end
  local own = { keys[1], keys[2], keys[timers], keys[dirties], keys[4], keys[had] }
  local found = run(own, { more[1], more[2], scope }, function()
    return follow(closes, is_over, refreshes, prunes)
  end)
  if is_dirty == 1 then mark, all = MICROS, call('HGETALL', EVENTS) end
  return { answer, first, mark, all, found[1], found[2] }
end
