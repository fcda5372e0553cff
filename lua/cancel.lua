-- cancel: Delayed | Blocked | Ready | Retry → Cancelled; a Working task is asked to stop; up to 128
-- at once
--
-- A waiting task is Cancelled at once. Its entry stays in the ready list as a counted tombstone,
-- because removing it from the middle of a long list would take tens of ms. The worker of a running
-- task receives the request through its wakeup list or in the reply to its next heartbeat. In the
-- wakeup list, the request names the attempt by its token. A waiting task leaves its lane and
-- passes its permit on, if it has one, and leaves the gate at which it waits. One that waits for
-- its prerequisites no longer does. A task that is not due keeps its time for a requeue. Each task
-- is decided separately. The script reads each worker once for all tasks.
--
-- KEYS   the naming block
-- ARGV   1 now override · 2 batch of an operation, or '' · ids…
-- REPLY  OK, then for each: `cancelled` | `requested` | the state of one that has ended otherwise |
--        `left` for one of a batch that was cancelled before; then `out` if effects wait for a
--        relay
-- REFUSE NEWER with the required number · STALE for an earlier carrier of the operation

local meta, tasks, priority, delayed, retry, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5],
  KEYS[6]
local cancelled, workers, cancel, success = KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local waiters, skips, tries, operated = KEYS[11], KEYS[12], KEYS[13], KEYS[14]
local now, batch, asked = now_ms(ARGV[1]), ARGV[2], { select(3, unpack(ARGV)) }
local queue = { meta = meta, cancelled = cancelled, cancel = cancel, waiters = waiters }
local keys = { meta = meta, tasks = tasks, delayed = delayed, retry = retry, dead = dead,
  cancelled = cancelled, workers = workers, success = success }
local CANCEL_WAKEUP_TTL_MS = 60000
-- From this many entries on, a search through all of them costs more than a table.
local TABLE_FROM = 16

-- Checks.
local needs = redis.call('HGET', meta, 'needs')
if needs and tonumber(needs) > NEEDS_KNOWN then
  return { 'NEWER', needs }
end
local now_text = whole(now)
batch = batch_of(operated, batch)
if batch and batch.is_stale then
  return { 'STALE' }
end
local states, open, _, dues, stored = standings_of(keys, asked)
local holders, tokens = holders_of(meta, workers, open)
local waiting, records, headers, in_ready, intents, woken, messages = {}, {}, {}, {}, {}, {}, {}
local wakeups = key_of(meta, 'wake', '')
local moves, drops, flow = moves_of(meta), drops_of(meta), flow_of_ends(meta, needs)
local leaves, later, times = leaves_of(meta), {}, {}
queue.flow = flow
if flow then
  flow.is_left = is_outbox_left(meta)
end
for nth, id in ipairs(asked) do
  local state, holder = states[id], holders[id]
  local now_in = state or (holder and 'working' or 'ready')
  if not is_meant(batch, keys, nth, id, now_in, dues[id]) then
    states[id] = state == 'cancelled' and 'left' or now_in
  elseif holder then
    if state ~= 'requested' then
      intents[#intents + 1], intents[#intents + 2] = id, now_text
      local message, others = id .. ' ' .. tokens[id], messages[holder]
      if others then
        others[#others + 1] = message
      else
        messages[holder] = { message }
        woken[#woken + 1] = { key = wakeups .. holder, messages = messages[holder] }
        redis.call('LLEN', wakeups .. holder)
      end
    end
    states[id] = 'requested'
  elseif not state or state == 'delayed' or state == 'retry' then
    waiting[#waiting + 1], states[id] = id, 'cancelled'
    local due = dues[id]
    if due and tonumber(due) > now then
      later[#later + 1] = id
    end
    records[#waiting] = stored[nth]
    headers[#waiting] = header_of(records[#waiting])
    if flow and leave_unmet(flow, id, headers[#waiting], true) then
      moves.gone[id] = true
    end
    drop_from_lane(moves, headers[#waiting], id)
    drop_from_gates(drops, headers[#waiting], id)
    drop_from_gather(leaves, drops.gone, headers[#waiting], id)
    local has_gone = moves.gone[id] or drops.gone[id]
    if not state and not has_gone and not redis.call('ZSCORE', priority, id) then
      in_ready[#in_ready + 1] = id
    end
  end
end
local counted = #later > 0 and redis.call('HMGET', tries, unpack(later))
for i, id in ipairs(later) do
  times[2 * i - 1], times[2 * i] = id, with_due(counted[i], dues[id])
end
local endings = endings_of(queue, waiting)
for i, id in ipairs(waiting) do
  note_cancelled(queue, endings, i, id, headers[i], batch and batch.histories[id], records[i])
end
pass_permits(moves)
read_drops(drops, now)
read_leaves(leaves)
redis.call('ZCARD', priority)
redis.call('HGET', meta, 'tombstones')
redis.call('HLEN', skips)
local size, tried = redis.call('HLEN', cancel), #times > 0 and redis.call('HLEN', tries)
redis.call('HLEN', waiters)

-- Writes.
redis.call('HDEL', cancel, '')
if #intents > 0 then
  local becomes_table = size < TABLE_FROM and size + #intents / 2 >= TABLE_FROM
  hset_as_table(cancel, becomes_table and 0 or size + 1, intents)
  set_end_mark(string.sub(meta, 1, -5), 'cancel')
end
for _, worker in ipairs(woken) do
  redis.call('RPUSH', worker.key, unpack(worker.messages))
  redis.call('PEXPIRE', worker.key, CANCEL_WAKEUP_TTL_MS)
end
write_batch(batch, #waiting)
local reply = { 'OK' }
for i, id in ipairs(asked) do
  reply[i + 1] = states[id]
end
if #waiting == 0 then
  return flow and with_out(reply, flow) or reply
end
redis.call('ZREM', delayed, unpack(waiting))
redis.call('ZREM', retry, unpack(waiting))
for _, id in ipairs(in_ready) do
  redis.call('HINCRBY', skips, id, 1)
end
if #in_ready > 0 then
  redis.call('HINCRBY', meta, 'tombstones', #in_ready)
end
if tried then
  hset_as_table(tries, tried, times)
end
write_ends(queue, endings, now)
write_moves(moves, now)
-- After the next ones of lanes may have joined it.
redis.call('ZREM', priority, unpack(waiting))
write_drops(drops)
write_leaves(leaves, now)
return flow and with_out(reply, flow) or reply
