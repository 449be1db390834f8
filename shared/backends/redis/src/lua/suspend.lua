-- ARGV: 4 '1' to suspend, '0' to resume. KEYS: those of Span::Ready. Returns nothing where there is
-- no such active instance, else the scopes that have something to do.

begin()
if STATUS ~= 'r' then return false end
SUSPENDED = ARGV[4] == '1'
if SUSPENDED then write('p', '1') else erase('p') end
local found = refresh_all(fields_of())
return SUSPENDED and {} or found
