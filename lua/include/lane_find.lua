-- lane_find: whether a task that is in no other place waits for its prerequisites or in its lane.

-- `keys` caches whether any task waits.
local function is_blocked(keys, id)
  if redis.call('HEXISTS', string.sub(keys.meta, 1, -5) .. 'unmet', id) == 1 then
    return true
  end
  if keys.is_any_blocked == nil then
    keys.is_any_blocked = redis.call('ZCARD', string.sub(keys.meta, 1, -5) .. 'lanes') > 0
  end
  local header = keys.is_any_blocked and header_of(redis.call('HGET', keys.tasks, id)) or {}
  if type(header.n) ~= 'string' then
    return false
  end
  local at = redis.call('ZSCORE', key_of(keys.meta, 'lane', header.n), id)
  return at and tonumber(at) >= 0
end
