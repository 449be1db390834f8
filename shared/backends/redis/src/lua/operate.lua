-- Carries out an operator's action once: its history entry, and its input for the scope. ARGV: 4 lines of history to
-- keep, 5 the mark, 6 maximum number of marks, 7 id of the input or '', 8 its kind, 9 the input, 10 maximum number of
-- waiting inputs, then lines of history, and the elements that contain them. KEYS: those of Span::All. Returns 1 if it
-- was carried out, 2 if the instance has the mark, 0 if it doesn't exist, or -n if n inputs are waiting already.

begin('hn', 'om', 'n', 'x:' .. SCOPE)
if not STATUS then return 0 end
local marks, count = read('om') or ' ', 0
if string.find(marks, ' ' .. ARGV[5] .. ' ', 1, true) then return 2 end
if ARGV[7] ~= '' and is_there(SCOPE) and not knows(SCOPE, ARGV[7]) then
  local size = #box_of(SCOPE)
  if size >= tonumber(ARGV[10]) then return -size end
  inbox_add(SCOPE, ARGV[7], ARGV[8], ARGV[9], true)
  wake(SCOPE)
end
marks = marks .. ARGV[5] .. ' '
for _ in string.gmatch(marks, '%S+') do count = count + 1 end
for _ = tonumber(ARGV[6]) + 1, count do marks = string.gsub(marks, '^ %S+', '', 1) end
write('om', marks)
add_lines(tonumber(ARGV[4]), 11)
return 1
