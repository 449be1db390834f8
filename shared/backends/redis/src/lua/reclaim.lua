-- Ends the lease of a scope whose holder hasn't taken an input. ARGV: 4 id of the input. KEYS: those of Span::Ready.
-- Returns 1 if it did, else 0.

begin()
local lease = lease_of(SCOPE)
if not STATUS or not lease or is_paused() then return 0 end
for _, item in ipairs(box_of(SCOPE)) do
  if item[2] == ARGV[4] and item[4] ~= lease.token then
    drop_lease(SCOPE)
    wake(SCOPE)
    return 1
  end
end
return 0
