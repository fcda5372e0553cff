-- lane_join: tasks that join their lanes, because nothing but the lane keeps them from running.

local function joins_of(meta)
  local place = tonumber(redis.call('HGET', meta, 'places') or 0)
  return { base = string.sub(meta, 1, -5), lanes = {}, named = {}, blocked = 0, place = place,
    last_place = place }
end

-- Gives a task a permit or a place to wait. `is_back` is true if it has had a turn: it comes before
-- those that have not. Returns whether it has a permit.
local function join_lane(joins, name, width, id, is_back)
  local lane = joins.named[name]
  if not lane then
    local key = joins.base .. 'lane:' .. name
    lane = { key = key, name = name, set = {}, permits = redis.call('ZCOUNT', key, '-1', '-1'),
      waiting = redis.call('ZCOUNT', key, '0', '+inf') }
    lane.is_calm = lane.waiting == 0
    joins.named[name] = lane
    joins.lanes[#joins.lanes + 1] = lane
  end
  local has_permit, at = lane.permits < width and lane.waiting == 0, '0'
  if has_permit then
    lane.permits, at = lane.permits + 1, '-1'
  else
    lane.waiting, joins.blocked = lane.waiting + 1, joins.blocked + 1
    if not is_back then
      joins.place = joins.place + 1
      at = whole(joins.place)
    end
  end
  lane.set[#lane.set + 1], lane.set[#lane.set + 2] = at, id
  return has_permit
end

-- Reads the keys that `write_joins` writes and `join_lane` has not read.
local function read_joins(joins)
  redis.call('ZCARD', joins.base .. 'lanes')
end

local function write_joins(joins, now)
  local backlogs = {}
  for _, lane in ipairs(joins.lanes) do
    for first = 1, #lane.set, 4000 do
      redis.call('ZADD', lane.key, unpack(lane.set, first, math.min(first + 3999, #lane.set)))
    end
    if lane.is_calm and lane.waiting > 0 then
      backlogs[#backlogs + 1], backlogs[#backlogs + 2] = whole(now), lane.name
    end
  end
  if #backlogs > 0 then
    redis.call('ZADD', joins.base .. 'lanes', unpack(backlogs))
  end
  if joins.blocked > 0 then
    redis.call('HINCRBY', joins.base .. 'meta', 'blocked', whole(joins.blocked))
  end
  if joins.place > joins.last_place then
    redis.call('HSET', joins.base .. 'meta', 'places', whole(joins.place))
  end
end
