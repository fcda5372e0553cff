-- lane: the tasks of a lane, `lane:<key>`: -2 waits for its next attempt without a permit, -1 has a
-- permit, 0 comes back for one, and each number above 0 is the place of a task that waits for its
-- first turn. `lanes` has the lanes in which tasks wait, `blocked` in `meta` counts those tasks.

-- A call offers at most this many tasks more than it frees permits, after a lane became wider.
local WIDENED_MAX = 16

-- What a call does to lanes, in the order in which it meets them.
local function moves_of(meta)
  return { base = string.sub(meta, 1, -5), lanes = {}, named = {}, gone = {} }
end

local function lane_in(moves, name, width)
  local lane = moves.named[name]
  if not lane then
    lane = { key = moves.base .. 'lane:' .. name, name = name, width = width, freed = 0,
      waited = 0, out = {}, set = {} }
    moves.named[name] = lane
    moves.lanes[#moves.lanes + 1] = lane
  end
  lane.width = math.max(lane.width, width)
  return lane
end

-- A task with a permit leaves its lane.
local function leave_lane(moves, name, width, id)
  local lane = lane_in(moves, name, width)
  lane.freed = lane.freed + 1
  lane.out[#lane.out + 1] = id
end

-- Who gets the permits that become free. Reads every key that `write_moves` writes.
local function pass_permits(moves)
  moves.going, moves.calm, moves.unblocked = {}, {}, 0
  for _, lane in ipairs(moves.lanes) do
    local room = 0
    if lane.freed > 0 then
      room = lane.width - redis.call('ZCOUNT', lane.key, '-1', '-1') + lane.freed
      room = math.max(0, math.min(room, lane.freed + WIDENED_MAX))
    end
    local limit, offered, left = room + lane.waited, 0, false
    local waiting = limit > 0 and redis.call('ZRANGEBYSCORE', lane.key, '0', '+inf', 'LIMIT', '0',
      whole(limit + 1)) or {}
    for _, id in ipairs(waiting) do
      if not moves.gone[id] and offered < room then
        offered = offered + 1
        moves.going[#moves.going + 1] = id
        lane.set[#lane.set + 1], lane.set[#lane.set + 2] = '-1', id
      elseif not moves.gone[id] then
        left = true
      end
    end
    if #waiting > 0 and not left then
      moves.calm[#moves.calm + 1] = lane.name
    end
    moves.unblocked = moves.unblocked + offered + lane.waited
  end
  if moves.unblocked > 0 then
    local base = moves.base
    redis.call('ZCARD', base .. 'lanes')
    redis.call('HGET', base .. 'meta', 'blocked')
    redis.call('LLEN', base .. 'ready')
    redis.call('LLEN', base .. 'wake')
    redis.call('ZCARD', base .. 'priority')
    moves.ranks = priorities_of(base .. 'priorities', moves.going)
  end
end

-- Offered tasks are added to the end of the ready list, so lanes take turns.
local function write_moves(moves, now)
  for _, lane in ipairs(moves.lanes) do
    if #lane.set > 0 then
      redis.call('ZADD', lane.key, unpack(lane.set))
    end
    if #lane.out > 0 then
      redis.call('ZREM', lane.key, unpack(lane.out))
    end
  end
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
