-- lane_flags: what a report does if the queue has lanes.

-- Returns the hint of `due`; the moves in lanes, and the functions of `laned`, nil if the queue has
-- no lanes; and what the queue needs.
local function due_and_lanes(meta, laned)
  local flags = redis.call('HMGET', meta, 'due', 'needs')
  local needs = tonumber(flags[2] or 1)
  if needs < NEEDS_OF_LANES then
    return flags[1], nil, nil, nil, nil, needs
  end
  local moves_of, lane_report, pass_permits, write_moves = laned()
  return flags[1], moves_of(meta), lane_report, pass_permits, write_moves, needs
end
