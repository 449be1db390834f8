-- Looks at an instance. ARGV: 4 'instance' or 'scopes'. KEYS: those of Span::Waits.

if not STATUS then return false end
if ARGV[4] == 'instance' then return instance_parts() end
local names = {}
for _, field in ipairs(call('HKEYS', K)) do
  if string.sub(field, 1, 2) == 'r:' then names[#names + 1] = field end
end
table.sort(names)
local records = {}
for _, name in ipairs(names) do records[#records + 1] = call('HGET', K, name) end
return records
