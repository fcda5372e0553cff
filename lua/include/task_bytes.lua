-- task_bytes: the bytes of dead and of cancelled tasks. `meta` counts them as `dead_bytes` and
-- `cancelled_bytes`.

-- The bytes of one task: its record, its separate payload, and its error history. None of them
-- changes while the task is dead or cancelled. `history` is the error history that a script is
-- about to write.
local function kept_bytes(meta, id, history)
  local base = string.sub(meta, 1, -5)
  -- A key of another type counts as empty, because a count must not keep a task from its end.
  local blob = redis.pcall('HSTRLEN', base .. 'blobs', id)
  return redis.call('HSTRLEN', base .. 'tasks', id) + (type(blob) == 'number' and blob or 0)
    + (history and #history or redis.call('HSTRLEN', base .. 'errors', id))
end
