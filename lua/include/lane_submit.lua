-- lane_submit: the lanes of a submit.

-- The accepted tasks of lanes join them, unless they are due later, in the order of the call. Those
-- without a permit are `apart` from the ready list. The lanes are the options from `at` to before
-- `past`.
local function join_lanes(tasks, apart, first_task, at, past)
  local joins, widest = joins_of(string.sub(tasks, 1, -6) .. 'meta'), 0
  while at < past do
    local first, last, width = string.match(ARGV[at], '^@(%d+):(%d+);(%d+)$')
    width = tonumber(width)
    for position = tonumber(first), tonumber(last) do
      at = at + 1
      local reason = apart[position]
      if reason ~= 'taken' and width > widest then
        widest = width
      end
      if (reason == nil or reason == 'ranked')
        and not join_lane(joins, ARGV[at], width, ARGV[first_task + 2 * position - 2], false) then
        apart[position] = 'blocked'
      end
    end
    at = at + 1
  end
  read_joins(joins)
  joins.is_first = widest > 0 and joins.needs < NEEDS_OF_LANES
  joins.is_wider = widest > joins.widest and whole(widest)
  return joins
end

local function write_lanes(joins, now)
  write_joins(joins, now)
  if joins.is_first then
    redis.call('HSET', joins.base .. 'meta', 'needs', NEEDS_OF_LANES)
  end
  if joins.is_wider then
    redis.call('HSET', joins.base .. 'meta', 'widest', joins.is_wider)
  end
end
