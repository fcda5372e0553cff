-- lane_drop: tasks that leave their lanes without a worker.

-- A task that no worker holds leaves its lane, if it has joined it. `gone` has those that waited.
local function drop_from_lane(moves, header, id)
  if type(header.n) ~= 'string' then
    return
  end
  local lane = lane_in(moves, header.n, width_of(header))
  local at = redis.call('ZSCORE', lane.key, id)
  if at == '-1' then
    lane.freed = lane.freed + 1
  elseif at and tonumber(at) >= 0 then
    moves.gone[id] = true
    lane.waited = lane.waited + 1
  end
  if at then
    lane.out[#lane.out + 1] = id
  end
end
