-- Operations of the holder of a lease. ARGV: 4 token, 5 operation: 'renew' (6 milliseconds), 'drain', 'peek',
-- 'release'; or, without a lease, 'refresh' (6 holder and 7 attempt of a lease to release). KEYS: those of Span::Ready.

begin('n')
ME = SCOPE
if ARGV[5] == 'refresh' then
  local lease = lease_of(SCOPE)
  if lease and lease.holder == ARGV[6] and lease.attempt == ARGV[7] then drop_lease(SCOPE) end
  refresh(SCOPE)
  return { 'free' }
end
local lease = STATUS and held(ARGV[4])
if not lease then return { 'lost' } end
local what = ARGV[5]
if what == 'renew' then
  lease.till = NOW + ARGV[6]
  put_lease(SCOPE, lease)
  return { 'held' }
end
if what == 'release' then
  if has_news(SCOPE, ARGV[4]) then return { 'more' } end
  drop_lease(SCOPE)
  refresh(SCOPE)
  return { 'free' }
end
local notified = closed(SCOPE) and '1' or '0'
if what == 'peek' then
  local news = lease.notified ~= notified or has_news(SCOPE, ARGV[4])
  return { news and 'news' or 'none' }
end
if lease.notified ~= notified then
  lease.notified = notified
  put_lease(SCOPE, lease)
end
return { 'held', tonumber(notified), hand_out(SCOPE, ARGV[4]) }
