-- lane_join: tasks that join their lanes, because nothing but the lane keeps them from running.

-- `widest` of a queue in which widths were set at run time, in `widths`.
local WIDEST_IF_SET = 65536

-- A list of the lanes that tasks join. `waits` counts the tasks that must wait, `backlogs` has the
-- lanes in which tasks begin to wait; it may have others in which tasks wait. Places order only the
-- tasks of one lane, so all lanes of a call share them: `place` is the last one before the call,
-- `placed` has the texts of those that the call gives, and `most` is how many these are.
local function joins_of(meta)
  local flags = redis.call('HMGET', meta, 'places', 'blocked', 'widest', 'needs')
  local base = string.sub(meta, 1, -5)
  return { base = base, lane_base = base .. 'lane:', named = {}, backlogs = {}, waits = 0,
    place = tonumber(flags[1] or 0), placed = {}, most = 0, blocked = tonumber(flags[2] or 0),
    widest = tonumber(flags[3] or 1), needs = tonumber(flags[4] or 1) }
end

-- The permits of a lane, and whether tasks wait in it. The latter is only read if it keeps a free
-- permit from the next one.
local function permits_of(joins, key, width)
  local size = redis.call('ZCARD', key)
  if size == 0 then
    return 0, false
  elseif joins.widest == 1 and width == 1 then
    -- Every lane of the queue has one permit, which the first of its tasks has. The others wait.
    return 1, size > 1
  end
  local permits = redis.call('ZCOUNT', key, '-1', '-1')
  return permits, permits < width and redis.call('ZCOUNT', key, '0', '+inf') > 0
end

-- The place of a task that waits, the nth one of its lane that gets one in this call.
local function place_of(joins, nth)
  local place = joins.placed[nth]
  if not place then
    place, joins.most = whole(joins.place + nth), math.max(joins.most, nth)
    joins.placed[nth] = place
  end
  return place
end

-- Counts a task that must wait.
local function add_waiting(joins, name, is_waiting)
  joins.waits = joins.waits + 1
  if not is_waiting then
    joins.backlogs[#joins.backlogs + 1] = name
  end
end

-- Gives a task a permit or a place to wait. `is_back` is true if it has had a turn: it comes before
-- those that have not. Returns whether it has a permit. A lane is the list of the scores and tasks
-- to add.
local function join_lane(joins, name, width, id, is_back)
  local lane, key, permits, is_waiting, set = joins.named[name], nil, nil, nil, nil
  local size, nth, at = 0, 0, '-1'
  if lane then
    permits, is_waiting, width = lane.permits, lane.is_waiting, lane.width_set or width
    size, nth = #lane, lane.nth
  else
    key = joins.lane_base .. name
    if joins.widest == WIDEST_IF_SET then
      set = redis.call('HGET', joins.base .. 'widths', name)
      set = set and tonumber(set)
      width = set or width
    end
    permits, is_waiting = permits_of(joins, key, width)
  end
  local has_permit = permits < width and not is_waiting
  if has_permit then
    permits = permits + 1
  else
    add_waiting(joins, name, is_waiting)
    nth, is_waiting = is_back and nth or nth + 1, true
    at = is_back and '0' or place_of(joins, nth)
  end
  if lane then
    lane[size + 1], lane[size + 2] = at, id
    lane.permits, lane.is_waiting, lane.nth = permits, is_waiting, nth
  else
    lane = { at, id, key = key, permits = permits, is_waiting = is_waiting, width_set = set,
      nth = nth }
    joins.named[name] = lane
    joins[#joins + 1] = lane
  end
  return has_permit
end

-- Reads the keys that `write_joins` writes and `join_lane` has not read.
local function read_joins(joins)
  if #joins.backlogs > 0 then
    redis.call('ZCARD', joins.base .. 'lanes')
  end
end

-- `now` is used if tasks begin to wait in a lane.
local function write_joins(joins, now)
  for _, lane in ipairs(joins) do
    local size = #lane
    if size == 2 then
      redis.call('ZADD', lane.key, lane[1], lane[2])
    end
    for first = 1, size > 2 and size or 0, 4000 do
      redis.call('ZADD', lane.key, unpack(lane, first, math.min(first + 3999, size)))
    end
  end
  if #joins.backlogs > 0 then
    local since, backlogs = whole(now), {}
    for i, name in ipairs(joins.backlogs) do
      backlogs[2 * i - 1], backlogs[2 * i] = since, name
    end
    redis.call('ZADD', joins.base .. 'lanes', 'NX', unpack(backlogs))
  end
  if joins.waits > 0 then
    redis.call('HSET', joins.base .. 'meta', 'places', whole(joins.place + joins.most),
      'blocked',
      whole(joins.blocked + joins.waits))
  end
end
