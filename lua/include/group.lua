-- group: groups of tasks, at home. A group is named by an id that no task has, and tasks wait for
-- it under that id. `group:<group>` has its counts; `results:<group>` has, for the position of each
-- member that has ended, the JSON that it returned, or `!` and its state. A member counts once,
-- however often it is reported.

-- Reads a group; nil if it is not known.
local function group_of(base, gid)
  local key = base .. 'group:' .. gid
  -- Most ids are not groups, and this costs Redis a quarter of a read of these fields.
  if redis.call('EXISTS', key) == 0 then
    return nil
  end
  local found = redis.call('HMGET', key, 'total', 'done', 'sealed', 'failed', 'cancelled', 'lost',
    'state', 'keep')
  if not found[1] then
    return nil
  end
  return { key = key, results_key = base .. 'results:' .. gid, gid = gid,
    total = tonumber(found[1]), done = tonumber(found[2] or 0), is_sealed = found[3] == '1',
    failed = tonumber(found[4] or 0), cancelled = tonumber(found[5] or 0),
    lost = tonumber(found[6] or 0), state = found[7] or nil, keep = tonumber(found[8] or 0) }
end

-- What a task that takes the results of a group gets: where to read them.
local function group_handle(flow, group)
  return '{"$group":"' .. flow.own .. '/' .. group.gid .. '","total":' .. whole(group.total)
    .. ',"failed":' .. whole(group.failed) .. ',"cancelled":' .. whole(group.cancelled) .. '}'
end

-- The group ends in that state, and is kept for a while.
local function write_group_end(base, group, state, now)
  redis.call('HSET', group.key, 'state', state)
  redis.call('ZADD', base .. 'groups', whole(now + group.keep), group.gid)
end
