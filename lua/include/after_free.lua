-- after_free: prerequisites that are met, and the tasks that it frees.

-- A prerequisite of a task is met, and possibly brings its result. Returns whether the task waited
-- for it. `flow.free` has the tasks that wait for nothing else: the id, or a list of the id, its
-- due time, and whether it has a lane.
local function strike(flow, id, mark, result)
  local value = cached(flow.unmet, flow.unmet_key, id)
  if not value then
    return false
  elseif value == mark then
    if mark == TAKEN then
      take_input(flow, id, result or 'null')
    end
    remove(flow.unmet, id)
    flow.free[#flow.free + 1] = id
    return true
  end
  local marks, due, flags = parts_of(value)
  local at = string.find(marks, mark, 1, true)
  if not at then
    return false
  elseif mark == TAKEN then
    take_input(flow, id, result or 'null')
  end
  if #marks > 1 then
    local rest = string.sub(value, #marks + 1)
    marks = string.sub(marks, 1, at - 1) .. string.sub(marks, at + 1)
    change(flow.unmet, id, marks .. rest)
  else
    leaves_unmet(flow, id, flags)
    flow.free[#flow.free + 1] = { id, due, string.find(flags, 'l', 1, true) }
  end
  return true
end

-- A free task is ready, or waits for its due time. A task of a lane, or one that runs with others,
-- is due now, so the next claim lets it join them. Reads the keys that `write_free` writes.
local function read_free(flow, now)
  local base, ready = flow.base, {}
  flow.later = {}
  for _, task in ipairs(flow.free) do
    local is_plain = type(task) == 'string'
    local id, due, has_lane = task, 0, nil
    if not is_plain then
      id, due, has_lane = task[1], task[2] or 0, task[3]
    end
    if due > now or has_lane then
      due = math.max(due, now)
      flow.later[#flow.later + 1], flow.later[#flow.later + 2] = whole(due), id
      flow.due_first = math.min(flow.due_first or due, due)
    else
      ready[#ready + 1] = id
    end
  end
  flow.ready = ready
  if #ready > 0 then
    redis.call('LLEN', base .. 'ready')
    redis.call('ZCARD', base .. 'priority')
    flow.ranks = priorities_of(base .. 'priorities', ready)
  end
  if #flow.later > 0 then
    flow.delayed_size = redis.call('ZCARD', base .. 'delayed')
    flow.due_hint = redis.call('HGET', flow.meta, 'due')
  end
  if #flow.free > 0 then
    redis.call('LLEN', base .. 'wake')
  end
end

local function write_free(flow, now)
  local base = flow.base
  write_inputs(flow)
  if #flow.ready > 0 then
    add_ready(base .. 'ready', base .. 'priority', base .. 'wake', flow.ready, flow.ranks, now)
  end
  if #flow.later > 0 then
    zadd_as_table(base .. 'delayed', flow.delayed_size, flow.later)
    due_at_latest(flow.meta, base .. 'wake', flow.due_hint, flow.due_first)
  end
end
