-- group_member: whether the members of a group are stored.

-- How many members a call looks at, from the last. A client that dies after it has enrolled members
-- and before it has submitted them leaves out the last ones.
local LOOKED_AT = 32

-- The id of a member, as `Member::id` in Rust makes it: the last 62 bits of the group's id, which
-- are ten digits and two bits, plus the position and 1. Nil if the group's id is not one of these.
local function member_id(gid, index)
  local carry, digits = index + 1, ''
  for place = 22, 12, -1 do
    local found = string.find(ID_DIGITS, string.sub(gid, place, place), 1, true)
    if #gid ~= 22 or not found then
      return nil
    end
    local own = place == 12 and 4 or 64
    local fixed = (found - 1) - (found - 1) % own
    local sum = (found - 1) % own + carry
    carry = math.floor(sum / own)
    local digit = fixed + sum % own + 1
    digits = string.sub(ID_DIGITS, digit, digit) .. digits
  end
  return string.sub(gid, 1, 11) .. digits
end

-- Returns whether one of the last members has not ended and is not stored. The members of other
-- queues can't be seen from here, so a group that has some lacks none.
local function lacks_members(group, tasks, own)
  local queues = redis.call('HGET', group.key, 'queues') or ''
  if queues ~= own then
    return false
  end
  local indexes = {}
  for index = math.max(0, group.total - LOOKED_AT), group.total - 1 do
    indexes[#indexes + 1] = whole(index)
  end
  local ends = #indexes > 0 and redis.call('HMGET', group.results_key, unpack(indexes)) or {}
  for i, index in ipairs(indexes) do
    local id = not ends[i] and member_id(group.gid, tonumber(index))
    if id and redis.call('HEXISTS', tasks, id) == 0 then
      return true
    end
  end
  return false
end
