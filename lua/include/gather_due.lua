-- gather_due: runs that are due, and due tasks that gather.

-- Returns whether a task that leads a run of this name still does: it is ready, waits for a gate,
-- or a worker holds it.
local function leads(base, name, id)
  local record = redis.call('HGET', base .. 'tasks', id)
  if not record then
    return false
  end
  for _, state in ipairs({ 'delayed', 'retry', 'dead', 'cancelled' }) do
    if redis.call('ZSCORE', base .. state, id) then
      return false
    end
  end
  -- One that was lost with its worker waits with those that were tried as often.
  local run, at = gathered_at(base, header_with_gather(record) or {}, id)
  return not at or run.name == name
end

-- Which task of a due key leads its next run, nil if none; the last leader, if that has ended; and
-- whether the last one still leads.
local function leader_in(base, name, key)
  local first = redis.call('ZRANGE', key, '0', '1', 'WITHSCORES')
  if first[2] ~= '-1' then
    return first[1], nil, false
  elseif leads(base, name, first[1]) then
    return nil, nil, true
  end
  return first[3], first[1], false
end

-- When a due task joined: nil if it joins for the first time. One that a worker had has counts, or
-- is due since its birth.
local function since_of(base, id, tries, now)
  local born = math.min(born_ms(id), now)
  if tries then
    return born
  end
  local due = redis.call('ZSCORE', base .. 'delayed', id)
  return due and tonumber(due) <= born and born or nil
end

-- Returns the due tasks that do not gather. The others join those with which they run.
local function past_gathers(queue, joins, ids, now)
  local base, alone, tries = joins.base, {}, nil
  for i, record in ipairs(#ids > 0 and redis.call('HMGET', queue.tasks, unpack(ids)) or {}) do
    local id, header = ids[i], header_with_gather(record)
    if header then
      tries = tries or redis.call('HMGET', base .. 'tries', unpack(ids))
    end
    local losses = tonumber(header and string.match(tries[i] or '', '^%d+:(%d+)') or 0)
    if header and gathers_again(header, losses) then
      local run = gathering_of(base, header, tries[i])
      join_gather(joins, run, id, now, since_of(base, id, tries[i], now))
      joins.ids[id] = run.name
    else
      alone[#alone + 1] = id
    end
  end
  return alone
end

-- Takes the tasks that gather out of the due ones. Returns the others, and after them those that
-- lead a run that is due; when the next run is due; and a function that writes it.
local function gathered_of(queue, ids, now)
  local joins, offers, empty, led = gathers_of(queue.meta), {}, {}, 0
  local base = joins.base
  joins.ids = {}
  local alone = past_gathers(queue, joins, ids, now)
  local due = redis.call('ZRANGEBYSCORE', joins.gathers, '-inf', whole(now), 'WITHSCORES',
    'LIMIT', '0', whole(DUE_MAX + 1))
  local next_due = tonumber(due[2 * DUE_MAX + 2] or redis.call('ZRANGEBYSCORE', joins.gathers,
    '(' .. whole(now), '+inf', 'WITHSCORES', 'LIMIT', '0', '1')[2])
  for i = 1, math.min(#due, 2 * DUE_MAX), 2 do
    local name, key = due[i], base .. 'gather:' .. due[i]
    local leader, gone, is_led = leader_in(base, name, key)
    if joins.ids[gone or ''] == name then
      gone = nil
    end
    if leader or is_led then
      offers[#offers + 1] = { name = name, key = key, leader = leader, gone = gone }
      next_due = math.min(next_due or now + LEAD_MS, now + LEAD_MS)
      alone[#alone + 1], led = leader, led + (leader and 1 or 0)
    elseif joins.named[name] then
      -- `due` in `meta` must not be later.
      joins.named[name].due, next_due = now, now
    else
      empty[#empty + 1] = { name, gone and key, gone }
    end
  end
  local first = first_gather(joins)
  next_due = first and math.min(next_due or first, first) or next_due

  local function write()
    redis.call('ZREM', joins.gathers, '')
    write_gathers(joins)
    for _, offer in ipairs(offers) do
      if offer.leader then
        redis.call('ZADD', offer.key, '-1', offer.leader)
      end
      if offer.gone then
        redis.call('ZREM', offer.key, offer.gone)
      end
      redis.call('ZADD', joins.gathers, whole(now + LEAD_MS), offer.name)
    end
    for _, one in ipairs(empty) do
      redis.call('ZREM', joins.gathers, one[1])
      if one[2] then
        redis.call('ZREM', one[2], one[3])
      end
    end
    if led > 0 then
      redis.call('HINCRBY', queue.meta, 'blocked', -led)
    end
  end
  return alone, next_due, write
end
