-- find: where a task is. Asked on rare paths only; no index is kept for it.

-- A task's line among the last successes, which opens with its id. It is asked for soon after.
local function summary_of(success, id)
  local summaries = redis.call('LRANGE', success, 0, -1)
  for i = #summaries, 1, -1 do
    if string.sub(summaries[i], 1, #id) == id then
      return summaries[i]
    end
  end
  return nil
end

-- The state's word, the worker that holds it, and the time it is due or ended at ('' where none).
-- What has a record and stands nowhere else stands in line.
local function find(keys, id)
  if redis.call('HEXISTS', keys.tasks, id) == 0 then
    local result = derive(keys.meta, 'result', id)
    if redis.call('EXISTS', result) == 1 or summary_of(keys.success, id) then
      return 'success', '', ''
    end
    return 'forgotten', '', ''
  end
  local due = redis.call('ZSCORE', keys.delayed, id)
  if due then
    return 'delayed', '', due
  end
  due = redis.call('ZSCORE', keys.retry, id)
  if due then
    return 'retry', '', due
  end
  local ended = redis.call('ZSCORE', keys.cancelled, id)
  if ended then
    return 'cancelled', '', ended
  end
  ended = redis.call('ZSCORE', keys.dead, id)
  if ended then
    return 'dead', '', ended
  end
  for _, worker in ipairs(redis.call('ZRANGE', keys.workers, 0, -1)) do
    if redis.call('HEXISTS', derive(keys.meta, 'working', worker), id) == 1 then
      return 'working', worker, ''
    end
  end
  return 'ready', '', ''
end
