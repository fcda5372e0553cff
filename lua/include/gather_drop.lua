-- gather_drop: tasks without a worker that no longer wait for a run.

local function leaves_of(meta)
  local base = string.sub(meta, 1, -5)
  return { base = base, meta = meta, named = {}, count = 0,
    is_any = redis.call('ZCARD', base .. 'gathers') > 0 }
end

-- `gone` has the tasks that waited. One that leads is ready, waits for a gate, or was claimed.
-- `counts` are its tries, if the caller has read them.
local function drop_from_gather(leaves, gone, header, id, counts)
  if not leaves.is_any then
    return
  end
  local run, at = gathered_at(leaves.base, header, id, counts)
  if not at then
    return
  end
  local one = leaves.named[run.name]
  if not one then
    one = { name = run.name, key = run.key, ids = {}, is_led = false }
    leaves.named[run.name], leaves[#leaves + 1] = one, one
  end
  one.ids[#one.ids + 1] = id
  if at == '-1' then
    one.is_led = true
  else
    gone[id], leaves.count = true, leaves.count + 1
  end
end

-- A key without tasks is not due. If the task that leads leaves, the next one leads at once.
local function read_leaves(leaves)
  leaves.empty, leaves.due = {}, {}
  for _, one in ipairs(leaves) do
    if redis.call('ZCARD', one.key) == #one.ids then
      leaves.empty[#leaves.empty + 1] = one.name
    elseif one.is_led then
      leaves.due[#leaves.due + 1] = one.name
    end
  end
  if #leaves > 0 then
    leaves.hint = redis.call('HGET', leaves.meta, 'due')
    redis.call('LLEN', leaves.base .. 'wake')
  end
end

-- The caller lets `due` in `meta` cover the keys that are due.
local function leave_gathers(leaves, now)
  for _, one in ipairs(leaves) do
    redis.call('ZREM', one.key, unpack(one.ids))
  end
  if #leaves.empty > 0 then
    redis.call('ZREM', leaves.base .. 'gathers', unpack(leaves.empty))
  end
  for _, name in ipairs(leaves.due) do
    redis.call('ZADD', leaves.base .. 'gathers', whole(now), name)
  end
  if leaves.count > 0 then
    redis.call('HINCRBY', leaves.meta, 'blocked', -leaves.count)
  end
end

local function write_leaves(leaves, now)
  leave_gathers(leaves, now)
  if #leaves.due > 0 then
    due_at_latest(leaves.meta, leaves.base .. 'wake', leaves.hint, now)
  end
end
