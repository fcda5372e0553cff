-- task_bytes: the bytes of dead and of cancelled tasks. `meta` counts them as `dead_bytes` and
-- `cancelled_bytes`.

-- Returns the bytes of one hash field. A key of another type counts as empty, because a count must
-- not keep a task from its end. Any other refusal ends the script, as that of another read does.
local function field_bytes(key, id)
  local bytes = redis.pcall('HSTRLEN', key, id)
  if type(bytes) == 'number' then
    return bytes
  end
  return string.find(bytes.err, 'WRONGTYPE', 1, true) and 0 or redis.call('HSTRLEN', key, id)
end

-- Returns whether the queue has no separate payloads, for a script with many tasks.
local function is_without_payloads(meta)
  return redis.pcall('HLEN', string.sub(meta, 1, -5) .. 'blobs') == 0
end

-- Returns the bytes of one task: its record, its separate payload, and its error history. None of
-- them changes while the task is dead or cancelled. `history` is the error history that a script
-- has read or is about to write, and `record` the record that it has read, if any. `is_without`
-- is whether the queue is known to have no separate payloads.
local function kept_bytes(meta, id, history, record, is_without)
  local base = string.sub(meta, 1, -5)
  return (record and #record or redis.call('HSTRLEN', base .. 'tasks', id))
    + (is_without and 0 or field_bytes(base .. 'blobs', id))
    + (history and #history or redis.call('HSTRLEN', base .. 'errors', id))
end
