-- operation_batch: the batch of an operation in which a call changes tasks.

-- For so long after its last call in a queue, an earlier carrier of the operation that was stopped
-- and goes on is refused.
local BATCH_KEPT_MS = '604800000'

-- Returns the batch that the text names, `<fence>;<number>;<state>;<cut-off ms>`; nil for ''. The
-- key has what was changed in the last batch here, so that another carrier can count it.
local function batch_of(operated, text)
  local fence, number, state, until_ms = string.match(text, '^(%d+);(%d+);(%a+);(%d+)$')
  if not fence then
    return nil
  end
  local known = redis.call('HMGET', operated, 'fence', 'number', 'done')
  local last_fence, last = tonumber(known[1] or 0), tonumber(known[2] or 0)
  return { key = operated, fence = fence, number = number, until_ms = tonumber(until_ms),
    state = state == 'blocked' and 'ready' or state,
    is_stale = last_fence > tonumber(fence) or last > tonumber(number),
    done = last == tonumber(number) and tonumber(known[3]) or 0 }
end

-- Returns whether the call means a task in this state since that ms, '' if none is known. A task
-- that waits without a time counts as ready.
local function is_meant(batch, state, at)
  return not batch or batch.state == state and (tonumber(at) or 0) <= batch.until_ms
end

-- Counts tasks that are changed.
local function write_batch(batch, count)
  if batch and count > 0 then
    redis.call('HSET', batch.key, 'fence', batch.fence, 'number', batch.number, 'done',
      whole(batch.done + count))
    redis.call('PEXPIRE', batch.key, BATCH_KEPT_MS)
  end
end
