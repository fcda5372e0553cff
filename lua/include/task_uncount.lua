-- task_uncount: removes the bytes of dead and cancelled tasks that leave from the counts.

-- The count minus these bytes, if `left` tasks stay in the state. The count of an empty state is 0,
-- whatever was counted.
local function bytes_without(counted, bytes, left)
  return left > 0 and math.max(counted - bytes, 0) or 0
end

local function counted_bytes(meta, state)
  return tonumber(redis.call('HGET', meta, state .. '_bytes') or 0)
end
