-- permit: the permits of tasks that leave their workers. `permits` has the gates of each task, each
-- name with a line break after it; `busy:<gate>` has the tasks.

-- Returns the permits of these tasks, nil if they have none. Reads every key that `give_back`
-- writes.
local function permits_of(meta, ids)
  local base = string.sub(meta, 1, -5)
  local key = base .. 'permits'
  if #ids == 0 or redis.call('HLEN', key) == 0 then
    return nil
  end
  local back = { base = base, key = key, ids = {}, gates = {}, named = {} }
  for i, permits in ipairs(redis.call('HMGET', key, unpack(ids))) do
    if permits then
      back.ids[#back.ids + 1] = ids[i]
    end
    for name in string.gmatch(permits or '', '([^\n]*)\n') do
      local gate = back.named[name]
      if not gate then
        gate = { name = name, ids = {} }
        back.named[name], back.gates[#back.gates + 1] = gate, gate
        redis.call('ZCARD', base .. 'busy:' .. name)
        -- Tasks in the ready list wait for the queue's own gate.
        gate.is_awaited = name == '' or redis.call('ZCARD', base .. 'gate:' .. name) > 0
        back.is_awaited = back.is_awaited or gate.is_awaited
        -- It may be known to open later, such as when a permit outside tasks ends.
        gate.opens = gate.is_awaited
          and tonumber(redis.call('ZSCORE', base .. 'gates', name) or math.huge)
      end
      gate.ids[#gate.ids + 1] = ids[i]
    end
  end
  if back.is_awaited then
    redis.call('LLEN', base .. 'wake')
    back.due = redis.call('HGET', meta, 'due')
  end
  return #back.ids > 0 and back or nil
end

-- A gate that was full opens, if a class waits at it. `now` is used if a task waits. `due` may be
-- too late for a gate that is open already, because an earlier release has written it.
local function give_back(back, now)
  local base, opened, due = back.base, {}, nil
  redis.call('HDEL', back.key, unpack(back.ids))
  for _, gate in ipairs(back.gates) do
    redis.call('ZREM', base .. 'busy:' .. gate.name, unpack(gate.ids))
    if gate.is_awaited and gate.name ~= '' then
      due = math.min(due or now, gate.opens)
      if gate.opens > now then
        opened[#opened + 1], opened[#opened + 2] = whole(now), gate.name
      end
    end
  end
  if #opened > 0 then
    redis.call('ZADD', base .. 'gates', unpack(opened))
  end
  if due then
    due_at_latest(base .. 'meta', base .. 'wake', back.due, due)
  end
  if back.is_awaited then
    wake_worker(base .. 'wake')
  end
end
