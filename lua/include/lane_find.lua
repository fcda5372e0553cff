-- lane_find: whether a task that is in no other place waits for its prerequisites, in its lane, or
-- for a run with others.

-- `keys` caches whether any task waits.
local function is_blocked(keys, id)
  if redis.call('HEXISTS', string.sub(keys.meta, 1, -5) .. 'unmet', id) == 1 then
    return true
  end
  local base = string.sub(keys.meta, 1, -5)
  if keys.is_any_blocked == nil then
    keys.is_any_blocked = redis.call('ZCARD', base .. 'lanes') > 0
      or redis.call('ZCARD', base .. 'gathers') > 0
  end
  local header = keys.is_any_blocked and header_of(redis.call('HGET', keys.tasks, id)) or {}
  local key = type(header.n) == 'string' and key_of(keys.meta, 'lane', header.n)
  local at
  if key then
    at = redis.call('ZSCORE', key, id)
  else
    local _, gathered = gathered_at(base, header, id)
    at = gathered
  end
  return at and tonumber(at) >= 0
end
