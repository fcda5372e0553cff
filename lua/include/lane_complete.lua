-- lane_complete: the lanes of a call of completions.

-- The tasks of lanes leave them. The lanes are the extras from `at` to before `past`.
local function leave_lanes(meta, first_id, at, past, is_held)
  local moves = moves_of(meta)
  while at < past do
    local first, last, width = string.match(ARGV[at], '^@(%d+):(%d+);(%d+)$')
    width = tonumber(width)
    for position = tonumber(first), tonumber(last) do
      at = at + 1
      if not is_held or is_held[position] then
        leave_lane(moves, ARGV[at], width, ARGV[first_id + position - 1])
      end
    end
    at = at + 1
  end
  return moves
end
