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

-- The same in a queue whose lanes have one permit each. Each task is the first of its lane, and the
-- next one gets the permit. One command shows that one, and whether others wait behind it. Returns
-- nil if two tasks leave one lane. `lefts` has the key, the task that leaves and the next one, or
-- false, of each lane.
local function leave_narrow_lanes(base, first_id, at, past, is_held)
  local call, ARGV, lane_base, seen = redis.call, ARGV, base .. 'lane:', {}
  local lefts, going, calm, left, gone = {}, {}, {}, 0, 0
  while at < past do
    local first, last = string.match(ARGV[at], '^@(%d+):(%d+)')
    for position = tonumber(first), tonumber(last) do
      at = at + 1
      if not is_held or is_held[position] then
        local name = ARGV[at]
        local key = lane_base .. name
        local behind = call('ZRANGE', key, '1', '2')
        local next_one = behind[1]
        lefts[left + 1], lefts[left + 2], left = key, ARGV[first_id + position - 1], left + 3
        lefts[left] = next_one or false
        if seen[name] then
          return nil
        end
        seen[name] = true
        if next_one then
          gone = gone + 1
          going[gone] = next_one
          if not behind[2] then
            calm[#calm + 1] = name
          end
        end
      end
    end
    at = at + 1
  end
  return { base = base, lefts = lefts, going = going, calm = calm, unblocked = gone }
end

-- Which tasks leave their lanes, and who gets their permits. Reads every key that `write_left`
-- writes.
local function read_left(base, first_id, at, past, is_held)
  local moves = not redis.call('HGET', base .. 'meta', 'widest')
    and leave_narrow_lanes(base, first_id, at, past, is_held)
  if moves then
    read_passed(moves)
  else
    moves = leave_lanes(base .. 'meta', first_id, at, past, is_held)
    pass_permits(moves)
  end
  return moves
end

local function write_left(moves, now)
  local call, lefts = redis.call, moves.lefts
  if not lefts then
    write_moves(moves, now)
    return
  end
  for i = 1, #lefts, 3 do
    local key, next_one = lefts[i], lefts[i + 2]
    if next_one then
      call('ZADD', key, '-1', next_one)
    end
    call('ZREM', key, lefts[i + 1])
  end
  write_passed(moves, now)
end
