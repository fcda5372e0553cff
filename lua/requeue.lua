-- requeue: Dead | Cancelled → Ready | Blocked | Delayed, by an operator
--
-- The script resets the counts of tries and keeps the error history. A task that can expire has its
-- whole time again. The task holds its biz id again; if another task holds it, the script refuses
-- and names that task. A task of a lane joins the lane again, before the tasks that have not had a
-- turn; a task that blocks its lane still has the permit. A task that ended while it waited for its
-- prerequisites waits again for those that are not met. A task that has a tombstone in the ready
-- list, cannot expire and is ready at once has its old place there again. An operation on many
-- tasks, which undoes a cancel, lets a task that was cancelled before it was due be Delayed until
-- then. It requeues those that wait for others first, so that these learn of each success.
--
-- The script remembers a finished operation for a while, so a repeat after a lost reply gets the
-- same answer.
--
-- KEYS   the naming block; the last key has the name of the operation
-- ARGV   1 now override · 2 id · 3 batch of an operation on many tasks, or '' · 4 `waits` to
--        requeue only a task that waits for its prerequisites again, or ''
-- REPLY  OK, `out` if effects wait for a relay
-- REFUSE NEWER with the required number · WRONG_STATE with the state · DUPLICATE with the owner's
--        id, and the ms when the window ends if the owner has succeeded · CYCLE with the tasks
--        through which it would wait for itself, and commas between them · STALE for an earlier
--        carrier of the operation on many tasks

local meta, tasks, ready, priority, priorities = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local delayed, retry, dead, cancelled, workers = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local success, tries, cancel, wake = KEYS[11], KEYS[12], KEYS[13], KEYS[14]
local skips, requeued, operated = KEYS[15], KEYS[16], KEYS[17]
local now, id, batch, only = now_ms(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local REMEMBERED_MS = '60000'

-- Checks.
local needs = redis.call('HGET', meta, 'needs')
if needs and tonumber(needs) > NEEDS_KNOWN then
  return { 'NEWER', needs }
end
batch = batch_of(operated, batch)
if batch and batch.is_stale then
  return { 'STALE' }
end
if not batch and redis.call('GET', requeued) then
  return is_outbox_left(meta) and { 'OK', 'out' } or { 'OK' }
end
local keys = { meta = meta, tasks = tasks, delayed = delayed, retry = retry, dead = dead,
  cancelled = cancelled, workers = workers, success = success }
local state, _, at = find(keys, id)
if state ~= 'dead' and state ~= 'cancelled' or not is_meant(batch, keys, 1, id, state, at) then
  return { 'WRONG_STATE', state }
end
local header = header_of(redis.call('HGET', tasks, id))
local biz = biz_key(meta, header)
local expires_in = tonumber(header.e)
local owner, window_end
if biz then
  owner, window_end = biz_owner(tasks, redis.call('GET', biz), now)
end
if owner and owner ~= id then
  return { 'DUPLICATE', window_end and owner .. ' ' .. window_end or owner }
end
local zset = state == 'dead' and dead or cancelled
local left = redis.call('ZCARD', zset) - 1
local bytes = bytes_without(counted_bytes(meta, state), kept_bytes(meta, id), left)
local ranks = priorities_of(priorities, { id })
local joins, is_ready = nil, true
local flow = again_of(meta, needs, id, header, now, batch)
if only == 'waits' and not (flow and flow.is_blocked) then
  return { 'WRONG_STATE', state }
end
local cycle = flow and flow.is_blocked and cycle_of({ flow = flow, owners = {}, waiting_here = {} },
  id, biz and string.sub(biz, #flow.base + 5), flow.open)
if cycle then
  return { 'CYCLE', cycle }
end
local lane = type(header.n) == 'string' and key_of(meta, 'lane', header.n)
local due_hint, later = nil, nil
local stored = redis.call('HGET', tries, id)
local counts, due = without_due(stored)
due = batch and math.max(due or flow and flow.due or now, now) or now
if flow and flow.is_blocked then
  is_ready = false
elseif due > now or gathering_of('', header) then
  -- The claim after its time lets it join its lane, or those with which it runs.
  is_ready, later = false, redis.call('ZCARD', delayed)
  due_hint = redis.call('HGET', meta, 'due')
elseif lane and redis.call('ZSCORE', lane, id) ~= '-1' then
  joins = joins_of(meta)
  is_ready = join_lane(joins, header.n, width_of(header), id, true)
  read_joins(joins)
end
local was_tried = counts ~= nil
-- An entry without a stamp would show a claim that the task expires as it did. The entry of a task
-- that was tried has one.
local keeps_place = is_ready and not expires_in
local tombstones = keeps_place and tonumber(redis.call('HGET', skips, id) or '')
redis.call('HLEN', cancel)
redis.call('LLEN', ready)
redis.call('ZCARD', priority)
redis.call('LLEN', wake)

-- Writes.
redis.call('ZREM', zset, id)
write_batch(batch, 1)
redis.call('HSET', meta, state .. '_bytes', whole(bytes))
if was_tried or expires_in then
  -- The counts show a claim that the task has tries, and by when the task must be started.
  local start_by = expires_in and whole(now + expires_in)
  redis.call('HSET', tries, id, tries_text(0, 0, 0, start_by))
elseif stored then
  redis.call('HDEL', tries, id)
end
redis.call('HDEL', cancel, id)
if biz then
  local window = tonumber(header.w)
  redis.call('SET', biz, biz_mark(id, window and now + window or 0))
end
if joins then
  write_joins(joins, now)
end
if flow then
  write_again(flow, id, now)
end
if later then
  zadd_as_table(delayed, later, { whole(due), id })
  due_at_latest(meta, wake, due_hint, due)
end
if tombstones then
  redis.call('HINCRBY', skips, id, -1)
  if tombstones == 1 then
    redis.call('HDEL', skips, id)
  end
  redis.call('HINCRBY', meta, 'tombstones', -1)
  wake_worker(wake)
elseif is_ready then
  add_ready(ready, priority, wake, { id }, ranks, now)
end
if not batch then
  redis.call('SET', requeued, id, 'PX', REMEMBERED_MS)
end
return flow and with_out('OK', flow) or { 'OK' }
