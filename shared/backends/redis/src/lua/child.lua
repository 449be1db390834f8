-- Notes an instance that ends with this one. ARGV: 4 the child. Returns 1, or 0: this one is over.

if not STATUS or over() then return 0 end
local children = call('HGET', K, 'k')
children = children and cmsgpack.unpack(children) or {}
for _, child in ipairs(children) do
  if child == ARGV[4] then return 1 end
end
children[#children + 1] = ARGV[4]
call('HSET', K, 'k', cmsgpack.pack(children))
return 1
