-- task_uncount: subtracts the bytes of dead and cancelled tasks when the tasks leave their state.

-- Returns the count minus these bytes, if `left` tasks stay in the state. The count of an empty
-- state is always 0.
local function bytes_without(counted, bytes, left)
  return left > 0 and math.max(counted - bytes, 0) or 0
end

local function counted_bytes(meta, state)
  return tonumber(redis.call('HGET', meta, state .. '_bytes') or 0)
end
