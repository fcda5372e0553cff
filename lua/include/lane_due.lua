-- lane_due: tasks of lanes that are due.

-- Of tasks that are due, those that are ready now. The others wait in their lanes; `joins` is nil
-- if none of the tasks has a lane. The records show the lanes, so that no second index of delayed
-- tasks can differ from them.
local function past_lanes(queue, ids)
  local ready, joins = {}, nil
  for i, record in ipairs(#ids > 0 and redis.call('HMGET', queue.tasks, unpack(ids)) or {}) do
    local id, header, at = ids[i], header_with_lane(record), '-1'
    if header then
      joins = joins or joins_of(queue.meta)
      at = redis.call('ZSCORE', joins.base .. 'lane:' .. header.n, id)
    end
    if at == '-1' or join_lane(joins, header.n, width_of(header), id, at) then
      ready[#ready + 1] = id
    end
  end
  if joins then
    read_joins(joins)
  end
  return ready, joins
end
