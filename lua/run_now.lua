-- run_now: Delayed | Retry → due now, by an operator; up to 128 at once
--
-- The next claim moves the tasks on, as it does with all that are due: to the ready list, or to the
-- end of their lanes. So a task waits for its lane and its limits nevertheless. A task that is due
-- already stays as it is. Each task is decided separately.
--
-- KEYS   the naming block
-- ARGV   1 now override · 2 batch of an operation, or '' · ids…
-- REPLY  OK, then for each: `due`, or the state of a task that is neither delayed nor in retry
-- REFUSE NEWER with the required number · STALE for an earlier carrier of the operation

local meta, tasks, delayed, retry, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local cancelled, workers, success, wake = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local operated = KEYS[10]
local now, batch, asked = now_ms(ARGV[1]), ARGV[2], { select(3, unpack(ARGV)) }
local keys = { meta = meta, tasks = tasks, delayed = delayed, retry = retry, dead = dead,
  cancelled = cancelled, workers = workers, success = success }

-- Checks.
local facts = redis.call('HMGET', meta, 'needs', 'due')
local needs, hint = facts[1], facts[2]
if needs and tonumber(needs) > NEEDS_KNOWN then
  return { 'NEWER', needs }
end
batch = batch_of(operated, batch)
if batch and batch.is_stale then
  return { 'STALE' }
end
-- A task that was made due stays in its list until a claim moves it. So that an operation makes no
-- task due twice, it means those alone that are due after its cut-off, which is their time then.
local due_at = batch and math.min(now, batch.until_ms) or now
redis.call('LLEN', wake)
local states, open, _, times = standings_of(keys, asked)
local holders = holders_of(meta, workers, open)
local reply, early, due = { 'OK' }, { delayed = {}, retry = {} }, 0
for i, id in ipairs(asked) do
  local state = states[id]
  local at = early[state] and tonumber(times[id])
  if at and is_meant(batch, keys, i, id, state, at) and (not batch or at > due_at) then
    due = due + 1
    if at > due_at then
      early[state][id] = true
    end
    state = 'due'
  elseif holders[id] then
    state = 'working'
  elseif not state then
    local is_waiting = is_blocked(keys, id) or waits_at_gate(keys, id)
    state = is_waiting and 'blocked' or 'ready'
  end
  reply[i + 1] = state
end

-- Writes.
redis.call('ZREM', delayed, '')
write_batch(batch, due)
local is_any_early = false
for state, ids in pairs(early) do
  for id in pairs(ids) do
    redis.call('ZADD', keys[state], 'XX', whole(due_at), id)
    is_any_early = true
  end
end
if is_any_early then
  due_at_latest(meta, wake, hint, due_at)
end
return reply
