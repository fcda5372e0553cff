-- task_bytes: the bytes of dead and of cancelled tasks, which `meta` counts as `dead_bytes` and
-- `cancelled_bytes`.

-- Those of one task: its record, its payload beside that, and its error history. None of them
-- changes while it is dead or cancelled. `history` is what a script is about to write as that.
local function kept_bytes(meta, id, history)
  local base = string.sub(meta, 1, -5)
  return redis.call('HSTRLEN', base .. 'tasks', id) + redis.call('HSTRLEN', base .. 'blobs', id)
    + (history and #history or redis.call('HSTRLEN', base .. 'errors', id))
end
