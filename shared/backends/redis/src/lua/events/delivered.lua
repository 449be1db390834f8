-- Records which instances consumed a kept event. KEYS: 1 bodies, 2 instances that consumed it, and claims of it, 3
-- known, 4 open. ARGV: 1 event, 2 generation, 3 how, 4 the time, if the event is acknowledged with this, or '', 5 the
-- claimant or '', then instances. How:
-- 'claim': the claimant claims it for the instance, if no other instance consumed it or has a claim;
-- 'settle': like 'claim', but claims of other instances now count as consumptions;
-- 'look': the answer of 'claim', without a claim;
-- 'had': the instances consumed it, and the claimant's claims are over;
-- 'free': the claimant's claims are over, and nobody else's;
-- 'release': the instance gives back what it consumed.
-- Returns nothing if the event isn't kept any more; -1 if only claims of other instances are in the way; 1 if a claim
-- succeeded or nothing is left of consumptions and claims, else 0; 2 if the event is also acknowledged.

local how, claimant = ARGV[3], '\1' .. ARGV[5]

local function owner_of(member) return string.match(member, '^[^\1]*') end

-- Calls `visit` for each member until it returns something, and returns that.
local function scan(visit)
  local cursor = '0'
  repeat
    local page = redis.call('SSCAN', KEYS[2], cursor, 'COUNT', 100)
    cursor = page[1]
    for _, member in ipairs(page[2]) do
      local found = visit(member)
      if found then return found end
    end
  until cursor == '0'
end

local body = redis.call('HGET', KEYS[1], ARGV[1])
if not body then redis.call('DEL', KEYS[2]) end
if not body or string.match(body, '^%d+') ~= ARGV[2] then return false end
if how == 'claim' or how == 'settle' or how == 'look' then
  local claimed = {}
  local is_consumed = scan(function(member)
    local owner = owner_of(member)
    if owner == ARGV[6] then return end
    if owner == member then return true end
    claimed[#claimed + 1] = owner
  end)
  if not is_consumed and claimed[1] and how ~= 'settle' then return -1 end
  for _, owner in ipairs(claimed) do
    if how == 'settle' then redis.call('SADD', KEYS[2], owner) end
  end
  if is_consumed or claimed[1] then return 0 end
  if how == 'look' then return 1 end
end
for at = 6, #ARGV do
  local instance = ARGV[at]
  if how == 'had' then
    redis.call('SADD', KEYS[2], instance)
    if ARGV[5] ~= '' then redis.call('SREM', KEYS[2], instance .. claimant) end
  elseif how == 'free' then
    redis.call('SREM', KEYS[2], instance .. claimant)
  elseif how == 'release' then
    local own = {}
    scan(function(member)
      if owner_of(member) == instance then own[#own + 1] = member end
    end)
    for _, member in ipairs(own) do redis.call('SREM', KEYS[2], member) end
  else
    redis.call('SADD', KEYS[2], instance .. claimant)
  end
end
-- As in acknowledge.lua, if no other process has recorded that the event starts something.
if ARGV[4] ~= '' and redis.call('HGET', KEYS[4], ARGV[1]) == ARGV[2] .. ' =' then
  redis.call('HDEL', KEYS[4], ARGV[1])
  redis.call('ZADD', KEYS[3], 'XX', 'GT', ARGV[4], ARGV[1])
  return 2
end
if how == 'release' and redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
return 1
