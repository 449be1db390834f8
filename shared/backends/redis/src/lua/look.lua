-- Reads an instance. ARGV: 4 'instance', 'scopes', or 'view' (the instance, and scopes that have not ended). Scopes are
-- a list of names and records, and a list of the forks that are needed to read them: name, origin, creation time. KEYS:
-- those of Span::Waits.

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
local records, forks_of, seen = {}, {}, {}
fetch(names)
for _, name in ipairs(names) do
  local scope, record = string.sub(name, 3), known[name]
  records[#records + 1] = scope
  records[#records + 1] = record
  if string.byte(record) == 91 then
    local fork = branch_of(scope)
    if not seen[fork] then
      seen[fork] = true
      forks_of[#forks_of + 1] = fork
      forks_of[#forks_of + 1] = read('f:' .. fork)
      forks_of[#forks_of + 1] = stamp_of(fork_of(fork))
    end
  end
end
if all then return { records, forks_of } end
return { instance_parts(), records, forks_of }
