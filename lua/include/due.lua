-- due: tasks of `delayed` and `retry` whose time has come.

local DUE_MAX = 128

-- Returns up to DUE_MAX ids that are due, and the time of the next due task, nil if there is none.
local function due_in(zset, now)
  local head = redis.call('ZRANGE', zset, 0, 0, 'WITHSCORES')
  if not head[2] then
    return {}, nil
  end
  if tonumber(head[2]) > now then
    return {}, tonumber(head[2])
  end
  local ids = redis.call('ZRANGEBYSCORE', zset, '-inf', whole(now), 'LIMIT', 0, DUE_MAX + 1)
  if #ids > DUE_MAX then
    ids[#ids] = nil
    local left = redis.call('ZRANGEBYSCORE', zset, '-inf', whole(now), 'WITHSCORES',
      'LIMIT', DUE_MAX, 1)
    return ids, tonumber(left[2])
  end
  local next_due = redis.call('ZRANGEBYSCORE', zset, '(' .. whole(now), '+inf', 'WITHSCORES',
    'LIMIT', 0, 1)
  return ids, tonumber(next_due[2])
end

-- Removes so many tasks that `due_in` has returned. They are the first ones of the key, so Redis
-- does not search for each.
local function remove_due(zset, count)
  if count > 0 then
    redis.call('ZREMRANGEBYRANK', zset, '0', whole(count - 1))
  end
end
