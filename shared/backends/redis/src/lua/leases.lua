-- Functions for holders of leases. Inserted between the prelude and the scripts that need them.

-- Returns the lease if this token still holds it. An expired lease is valid until another holder takes it.
local function held(token)
  local lease = lease_of(SCOPE)
  if lease and lease.token == token then return lease end
  return nil
end

local function is_news(item, token, stands_still)
  return item[4] ~= token and (not stands_still or item[3] == 'o')
end

local function has_news(scope, token)
  local stands_still = is_paused()
  for _, item in ipairs(box_of(scope)) do
    if is_news(item, token, stands_still) then return true end
  end
  return false
end

-- Returns the inputs that were not handed to this lease yet, as pairs of id and input, and marks them as handed out.
local function hand_out(scope, token)
  local stands_still = is_paused()
  local items = {}
  for _, item in ipairs(box_of(scope)) do
    if is_news(item, token, stands_still) then
      item[4] = token
      items[#items + 1] = item[2]
      items[#items + 1] = read('i:' .. scope .. ':' .. item[1])
    end
  end
  if #items > 0 then put_box(scope) end
  return items
end

-- Status, suspended, header, output, error, end, search attributes, then names and values of the correlation.
local function instance_parts()
  local parts = {
    STATUS, SUSPENDED and 1 or 0, read('h'), read('out'), read('err'), read('end'), read('at'),
  }
  -- Redis cuts a response at the first nil, so missing parts are empty texts. An instance without waits has no hash
  -- EVENTS.
  for at = 3, 7 do parts[at] = parts[at] or '' end
  local waits = call('HGETALL', EVENTS)
  for at = 1, #waits, 2 do
    if string.sub(waits[at], 1, 2) == 'c:' then
      parts[#parts + 1] = string.sub(waits[at], 3)
      parts[#parts + 1] = waits[at + 1]
    end
  end
  return parts
end
