-- gate_find: whether a task that is in no other place waits for a gate.

-- `keys` caches whether any task waits.
local function waits_at_gate(keys, id)
  if keys.is_any_waiting == nil then
    keys.is_any_waiting = redis.call('ZCARD', string.sub(keys.meta, 1, -5) .. 'waits') > 0
  end
  if not keys.is_any_waiting then
    return false
  end
  local names = gates_of_header(header_of(redis.call('HGET', keys.tasks, id)))
  return redis.call('ZSCORE', key_of(keys.meta, 'wait', class_of(names)), id)
end
