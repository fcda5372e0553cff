-- task_uncount: dead and cancelled tasks leave, and their bytes are counted no more.

-- The count of bytes without so many, where so many tasks are left in the state. One of an emptied
-- state is none, whatever was counted.
local function bytes_without(counted, bytes, left)
  return left > 0 and math.max(counted - bytes, 0) or 0
end

local function counted_bytes(meta, state)
  return tonumber(redis.call('HGET', meta, state .. '_bytes') or 0)
end
