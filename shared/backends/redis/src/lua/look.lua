-- Looks at an instance. ARGV: 4 'instance', 'scopes', or 'view': the instance, and the records of
-- scopes that have not ended. KEYS: those of Span::Waits.

begin('h', 'out', 'err', 'end')
if not STATUS then return false end
if ARGV[4] == 'instance' then return instance_parts() end
local all = ARGV[4] == 'scopes'
local names = {}
for _, field in ipairs(fields_of()) do
  if string.sub(field, 1, 2) == 'r:' and (all or is_there(string.sub(field, 3))) then
    names[#names + 1] = field
  end
end
table.sort(names)
local records = {}
fetch(names)
for _, name in ipairs(names) do records[#records + 1] = known[name] end
if all then return records end
return { instance_parts(), records }
