-- Records an instance that ends with this one. ARGV: 4 the child. Returns 1, or 0 if this instance is over.

begin('k')
if not STATUS or over() then return 0 end
local children = read('k')
children = children and cmsgpack.unpack(children) or {}
for _, child in ipairs(children) do
  if child == ARGV[4] then return 1 end
end
children[#children + 1] = ARGV[4]
write('k', cmsgpack.pack(children))
return 1
