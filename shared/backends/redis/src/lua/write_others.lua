-- Writes the changes of a commit like write.lua (`write_guarded`), and then what follows from them for other scopes.
-- Branches come and go without changing what the commit was computed from, so what there is to do is found here: it is
-- done for all that is left of a fork or of the instance.
--
-- The facts have, as `others`: {
--   timers, dirty, consumed: positions in KEYS of timers, of dirty instances and of the consumed events,
--   scope,
--   closes: forks to close; their branches that have begun are cancelled, the others will never begin,
--   is_over: whether all other forks are closed too, since the instance is over; those of detached scopes stay open,
--   refreshes: whether the scopes of the instance may have become ready or not,
--   [prunes: the closed fork of a branch that is gone; it is removed with its last branch]
-- }
--
-- Returns false if nothing was written, otherwise what write.lua returns, always as a list, and at its end the scopes
-- that were cancelled, then, if all may have become ready, those that have something to do.

local function follow(others)
  begin()
  ME = SCOPE
  for _, name in ipairs(others.closes) do close_fork(name) end
  if others.is_over then
    local open = {}
    for _, field in ipairs(fields_of()) do
      local name = string.match(field, '^g:(.+)$')
      if name and closed(string.match(name, '^(.+)%.%d+$')) then open[#open + 1] = name end
    end
    table.sort(open)
    for _, name in ipairs(open) do close_fork(name) end
  end
  if others.prunes then prune_fork(others.prunes) end
  local cancelled, found = woken, others.refreshes and refresh_all(fields_of()) or {}
  return { cancelled, found }
end

local function main(keys, argv)
  local more = cmsgpack.unpack(argv[#argv])
  local others = more.others
  local answer = write_guarded(keys, argv)
  if not answer then return false end
  local first, mark, all = '', '', {}
  if type(answer) == 'table' then answer, first, mark, all = unpack(answer, 1, 4) end
  local own = { keys[1], keys[2], keys[others.timers], keys[others.dirty], keys[4], keys[others.consumed] }
  local found = run(own, { more.instance, more.namespace, others.scope }, function() return follow(others) end)
  if is_dirty == 1 then mark, all = MICROS, call('HGETALL', EVENTS) end
  return { answer, first, mark, all, found[1], found[2] }
end
