-- task_find: the place of a task. Only rare paths use it, because there is no index of places.

-- The summary of a task among the last successes; it begins with the task's id. Most calls come
-- soon after the success, so the function reads the latest summaries first, and no more than
-- needed.
local SUMMARIES_STEP = 64
local function summary_of(success, id)
  local size, last, byte = #id, -1, string.byte
  local end_of_id = byte(id, size)
  repeat
    local summaries = redis.call('LRANGE', success, last - SUMMARIES_STEP + 1, last)
    for i = #summaries, 1, -1 do
      local summary = summaries[i]
      if byte(summary, size) == end_of_id and string.sub(summary, 1, size) == id then
        return summary
      end
    end
    last = last - SUMMARIES_STEP
  until #summaries < SUMMARIES_STEP
  return nil
end

-- The keys of tasks that are neither working nor ready.
local INDEXES = { 'delayed', 'retry', 'cancelled', 'dead' }

-- Returns whether a task is among the last successes. A caller with many tasks reads the successes
-- once.
local function is_success(keys, id)
  if not keys.many then
    return summary_of(keys.success, id)
  end
  if not keys.succeeded then
    keys.succeeded = {}
    for _, summary in ipairs(redis.call('LRANGE', keys.success, 0, -1)) do
      keys.succeeded[string.sub(summary, 1, #id)] = true
    end
  end
  return keys.succeeded[id]
end

-- Returns the state of a task that has no record.
local function state_without_record(keys, id)
  local has_result = redis.call('EXISTS', key_of(keys.meta, 'result', id)) == 1
  return (has_result or is_success(keys, id)) and 'success' or 'forgotten'
end

-- Returns the state of a task if a key shows it, and the time when the task is due or ended ('' if
-- none). nil for a task that is working or ready.
local function standing(keys, id)
  if redis.call('HEXISTS', keys.tasks, id) == 0 then
    return state_without_record(keys, id), ''
  end
  for _, state in ipairs(INDEXES) do
    local at = redis.call('ZSCORE', keys[state], id)
    if at then
      return state, at
    end
  end
  return nil
end

-- Returns the name of the state, the worker that holds the task, and the time when it is due or
-- ended ('' if none). A task that has a record and is in no other place is in the ready list,
-- or waits in its lane or for a gate.
local function find(keys, id)
  local state, at = standing(keys, id)
  if state then
    return state, '', at
  end
  if is_blocked(keys, id) or waits_at_gate(keys, id) then
    return 'blocked', '', ''
  end
  for _, worker in ipairs(redis.call('ZRANGE', keys.workers, 0, -1)) do
    if redis.call('HEXISTS', key_of(keys.meta, 'working', worker), id) == 1 then
      return 'working', worker, ''
    end
  end
  return 'ready', '', ''
end
