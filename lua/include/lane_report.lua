-- lane_report: what an attempt's end without success means for its lane.

-- A task with a permit waits for its next attempt. The only permit of a lane stays with it, because
-- the order of that lane matters.
local function step_aside(moves, header, id)
  local width = width_of(header)
  if moves.widest == nil then
    moves.widest = redis.call('HGET', moves.base .. 'meta', 'widest')
  end
  if moves.widest == WIDTHS_SET then
    width = tonumber(redis.call('HGET', moves.base .. 'widths', header.n) or width)
  end
  if width > 1 then
    local lane = lane_in(moves, header.n, width, nil)
    lane.freed = lane.freed + 1
    set_in_lane(lane, '-2', id)
  end
end

-- `state` is `dead`, `expired`, `cancelled`, or `later` for a task that waits for its next attempt.
local function lane_report(moves, id, record, state)
  local header = header_with_lane(record)
  if not header then
    return
  elseif state == 'later' then
    step_aside(moves, header, id)
  elseif state ~= 'dead' or not header.nb then
    leave_lane(moves, header.n, width_of(header), id)
  end
end
