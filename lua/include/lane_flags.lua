-- lane_flags: what a report does if the queue has lanes.

-- Returns the hint of `due`. If the queue has lanes, also returns the moves in them, and the
-- functions of `laned`.
local function due_and_lanes(meta, laned)
  local flags = redis.call('HMGET', meta, 'due', 'needs')
  if not flags[2] or tonumber(flags[2]) < NEEDS_OF_LANES then
    return flags[1]
  end
  local moves_of, lane_report, pass_permits, write_moves = laned()
  return flags[1], moves_of(meta), lane_report, pass_permits, write_moves
end
