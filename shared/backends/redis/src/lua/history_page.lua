-- Returns a part of an instance's history. KEYS: 1 instance, 2 its history. ARGV: 1 the number of known entries, or ''
-- for the last ones, 2 the number of wanted entries, 3 the maximum number of kept entries, 4 the maximum size of the
-- response in bytes, not counting the last element. Returns { first, last, total, start, element, .. }: the part is
-- from entry first to before last, and the elements begin with entry start.

local AT_ONCE = 32
local gone, lines = unpack(redis.call('HMGET', KEYS[1], 'hd', 'hn'))
gone, lines = tonumber(gone or 0), tonumber(lines or 0)
local kept, limit, room = math.min(lines, tonumber(ARGV[3])), tonumber(ARGV[2]), tonumber(ARGV[4])
-- Counted from the first line in the list.
local first, last
if ARGV[1] == '' then
  first, last = math.max(lines - limit, lines - kept), lines
else
  first = math.min(math.max(tonumber(ARGV[1]) - gone, lines - kept), lines)
  last = math.min(first + limit, lines)
end

local function number(count) return string.format('%.0f', count) end
local function lines_of(element) return tonumber(string.match(element, '^%d+') or 0) end

local found, bytes = {}, 0
local function take(element)
  found[#found + 1] = element
  bytes = bytes + #element
end

-- Reads from the end if that is nearer, back to the element with the first line. If there isn't room for all of the
-- last entries, the oldest are left out.
local start, at = 0, 0
if first >= last then
  start = first
elseif ARGV[1] == '' or first > lines / 2 then
  local size = redis.call('LLEN', KEYS[2])
  start, at = lines, size
  while at > 0 and start > first and (ARGV[1] ~= '' or bytes < room) do
    local some = redis.call('LRANGE', KEYS[2], math.max(at - AT_ONCE, 0), at - 1)
    for n = #some, 1, -1 do
      if start <= first or (ARGV[1] == '' and bytes >= room) then break end
      at, start = at - 1, start - lines_of(some[n])
      if ARGV[1] == '' then take(some[n]) end
    end
  end
  if ARGV[1] == '' then
    for n = 1, math.floor(#found / 2) do
      found[n], found[#found + 1 - n] = found[#found + 1 - n], found[n]
    end
    first = math.max(first, start)
  end
end
if ARGV[1] ~= '' and first < last then
  local line = start
  while line < last and bytes < room do
    local some = redis.call('LRANGE', KEYS[2], at, at + AT_ONCE - 1)
    if #some == 0 then break end
    for _, element in ipairs(some) do
      if line >= last or bytes >= room then break end
      at = at + 1
      if line + lines_of(element) > first then
        if #found == 0 then start = line end
        take(element)
      end
      line = line + lines_of(element)
    end
  end
  last = math.min(last, line)
end
local answer = { number(gone + first), number(gone + last), number(gone + lines), number(gone + start) }
for _, element in ipairs(found) do answer[#answer + 1] = element end
return answer
