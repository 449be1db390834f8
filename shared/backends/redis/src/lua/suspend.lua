-- ARGV: 4 '1' to suspend, '0' to resume. KEYS: those of Span::Ready. Returns nothing where there is
-- no such active instance, else the scopes that have something to do.

if STATUS ~= 'r' then return false end
SUSPENDED = ARGV[4] == '1'
if SUSPENDED then call('HSET', K, 'p', '1') else call('HDEL', K, 'p') end
local ready = refresh_all()
return SUSPENDED and {} or ready
