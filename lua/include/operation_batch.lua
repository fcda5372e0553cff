-- operation_batch: the batch of an operation in which a call changes tasks.

-- For so long after its last call in a queue, an earlier carrier of the operation that was stopped
-- and goes on is refused.
local BATCH_KEPT_MS = '604800000'
-- The mark of a task that has ended is larger than this, and that of another one is smaller.
local ENDED = 140737488355328

-- Returns the batch that the text names, `<fence>;<number>;<states>;<cut-off ms>;<marks>`, with `+`
-- between the states and `,` between the marks; nil for ''. The key has what was changed in the
-- last batch here, so that another carrier can count it.
local function batch_of(operated, text)
  local fence, number, states, until_ms, marks = string.match(text,
    '^(%d+);(%d+);([%a+]+);(%d+);([%d,]*)$')
  if not fence then
    return nil
  end
  local known = redis.call('HMGET', operated, 'fence', 'number', 'done')
  local last_fence, last = tonumber(known[1] or 0), tonumber(known[2] or 0)
  local batch = { key = operated, fence = fence, number = number, until_ms = tonumber(until_ms),
    states = {}, marks = {}, histories = {},
    is_stale = last_fence > tonumber(fence) or last > tonumber(number),
    done = last == tonumber(number) and tonumber(known[3]) or 0 }
  for state in string.gmatch(states, '%a+') do
    batch.states[state] = true
  end
  for mark in string.gmatch(marks, '%d+') do
    batch.marks[#batch.marks + 1] = tonumber(mark)
  end
  return batch
end

-- Returns the mark of a task: when it ended, or when its last attempt failed. So a task that was
-- counted and has ended or failed again since then has another mark. The batch keeps the error
-- history that was read for it.
local function mark_of(batch, keys, id, state, at)
  if state == 'dead' or state == 'cancelled' then
    return ENDED + tonumber(at)
  end
  local errors, history = string.sub(keys.meta, 1, -5) .. 'errors', ''
  if batch.has_errors == nil then
    batch.has_errors = redis.call('HLEN', errors) > 0
  end
  if batch.has_errors then
    history = redis.call('HGET', errors, id) or ''
  end
  batch.histories[id] = history
  return tonumber(string.match(last_line(history), '^%d+') or 0)
end

-- Returns whether a call means its nth task, which is in this state since or until that time: it is
-- as it was counted. A task that waits without a time counts as ready or as blocked.
local function is_meant(batch, keys, nth, id, state, at)
  if not batch then
    return true
  end
  local states = batch.states
  if state == 'ready' and (states.ready or states.blocked)
    and not (states.ready and states.blocked) then
    state = (is_blocked(keys, id) or waits_at_gate(keys, id)) and 'blocked' or 'ready'
  end
  return states[state] and mark_of(batch, keys, id, state, at) == batch.marks[nth]
end

-- Counts tasks that are changed.
local function write_batch(batch, count)
  if batch and count > 0 then
    redis.call('HSET', batch.key, 'fence', batch.fence, 'number', batch.number, 'done',
      whole(batch.done + count))
    redis.call('PEXPIRE', batch.key, BATCH_KEPT_MS)
  end
end
