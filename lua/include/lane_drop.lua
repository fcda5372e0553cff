-- lane_drop: tasks that leave their lanes without a worker.

-- A task that no worker holds leaves its lane, if it has joined it. `gone` has those that waited.
local function drop_from_lane(moves, header, id)
  if type(header.n) ~= 'string' then
    return
  end
  local at = redis.call('ZSCORE', moves.lane_base .. header.n, id)
  if not at then
    return
  end
  local lane = lane_in(moves, header.n, width_of(header), id)
  if at == '-1' then
    lane.freed = lane.freed + 1
  elseif tonumber(at) >= 0 then
    moves.gone[id] = true
    lane.waited = lane.waited + 1
  end
end
