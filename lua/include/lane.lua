-- lane: the tasks of a lane, `lane:<key>`: -2 waits for its next attempt without a permit, -1 has a
-- permit, 0 comes back for one, and each number above 0 is the place of a task that waits for its
-- first turn. `lanes` has the lanes in which tasks wait, `blocked` in `meta` counts those tasks.
-- `widest` in `meta` is the largest width that a lane of the queue has had, absent if that is 1. It
-- is `WIDTHS_SET` if `widths` has widths that were set at run time.

-- A call offers at most this many tasks more than it frees permits, after a lane became wider.
local WIDENED_MAX = 16
-- More than any width.
local WIDTHS_SET = '65536'

-- What a call does to lanes: a list of them, in the order in which it meets them. `gone` has tasks
-- that waited and leave.
local function moves_of(meta)
  local base = string.sub(meta, 1, -5)
  return { base = base, lane_base = base .. 'lane:', named = {}, gone = {} }
end

-- A lane is the list of the tasks that leave it. `freed` counts permits that become free, `waited`
-- tasks that leave while they wait.
local function lane_in(moves, name, width, id)
  local lane = moves.named[name]
  if not lane then
    lane = { id, name = name, key = moves.lane_base .. name, width = width, freed = 0, waited = 0,
      set = false }
    moves.named[name] = lane
    moves[#moves + 1] = lane
    return lane
  elseif lane.width < width then
    lane.width = width
  end
  lane[#lane + 1] = id
  return lane
end

-- A task with a permit leaves its lane.
local function leave_lane(moves, name, width, id)
  local lane = lane_in(moves, name, width, id)
  lane.freed = lane.freed + 1
end

-- Sets the score of a task in its lane.
local function set_in_lane(lane, at, id)
  if lane.set then
    lane.set[#lane.set + 1], lane.set[#lane.set + 2] = at, id
  else
    lane.set = { at, id }
  end
end

-- Who of a lane gets the permits that become free. `first` is the rank of the first task that
-- waits. Returns how many get one.
local function offer(moves, lane, first)
  local freed, room, most = lane.freed, lane.width, lane.most
  if freed == 0 and not most then
    return 0
  elseif first ~= freed then
    room = room - redis.call('ZCOUNT', lane.key, '-1', '-1') + freed
  end
  -- Else all tasks that do not wait leave.
  most = most or freed + WIDENED_MAX
  if room > most then
    room = most
  end
  if room <= 0 then
    return 0
  end
  local offered, going, from, to = 0, moves.going, whole(first), first + room + lane.waited - 1
  to = to == first and from or whole(to)
  for _, id in ipairs(redis.call('ZRANGE', lane.key, from, to)) do
    if offered < room and not moves.gone[id] then
      offered = offered + 1
      going[#going + 1] = id
      set_in_lane(lane, '-1', id)
    end
  end
  return offered
end

-- Reads every key that `write_passed` writes.
local function read_passed(moves)
  local base = moves.base
  if #moves.calm > 0 then
    redis.call('ZCARD', base .. 'lanes')
  end
  if #moves.going > 0 then
    redis.call('LLEN', base .. 'ready')
    redis.call('LLEN', base .. 'wake')
    moves.ranks = priorities_of(base .. 'priorities', moves.going)
    if moves.ranks then
      redis.call('ZCARD', base .. 'priority')
    end
  end
end

-- Who gets the permits that become free. Reads every key that `write_moves` writes.
local function pass_permits(moves)
  moves.going, moves.calm, moves.unblocked = {}, {}, 0
  if #moves == 0 then
    return
  end
  local flags = redis.call('HMGET', moves.base .. 'meta', 'widest', 'blocked')
  for _, lane in ipairs(moves) do
    if flags[1] == WIDTHS_SET and not lane.most then
      local set = redis.call('HGET', moves.base .. 'widths', lane.name)
      lane.width = set and tonumber(set) or lane.width
    end
    local size, waiting, unblocked = redis.call('ZCARD', lane.key), lane.waited, lane.waited
    if size > #lane then
      -- The scores are not read if every lane has one permit: it belongs to the first task.
      local first = flags[1] and size - redis.call('ZCOUNT', lane.key, '0', '+inf') or 1
      waiting, unblocked = size - first, offer(moves, lane, first) + waiting
      lane.left = waiting - unblocked
    end
    if waiting > 0 and unblocked == waiting then
      moves.calm[#moves.calm + 1] = lane.name
    end
    moves.unblocked = moves.unblocked + unblocked
  end
  read_passed(moves)
end

-- Offered tasks are added to the end of the ready list, so lanes take turns.
local function write_passed(moves, now)
  local base = moves.base
  if #moves.calm > 0 then
    redis.call('ZREM', base .. 'lanes', unpack(moves.calm))
  end
  if moves.unblocked > 0 then
    redis.call('HINCRBY', base .. 'meta', 'blocked', whole(-moves.unblocked))
  end
  if #moves.going > 0 then
    add_ready(base .. 'ready', base .. 'priority', base .. 'wake', moves.going, moves.ranks, now)
  end
end

local function write_moves(moves, now)
  for _, lane in ipairs(moves) do
    if lane.set then
      redis.call('ZADD', lane.key, unpack(lane.set))
    end
    if #lane > 0 then
      redis.call('ZREM', lane.key, unpack(lane))
    end
  end
  write_passed(moves, now)
end
