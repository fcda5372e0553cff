-- delete: Delayed | Blocked | Ready | Retry | Dead | Cancelled → ∅, by an operator; up to 128 at
-- once
--
-- The script removes all data of the task, and frees its biz id. A working task stays unchanged,
-- because the report of its worker must find it. A client that waits for a deleted task receives
-- `forgotten`. Each task is decided separately. The script reads each worker once for all tasks. An
-- entry in the ready list stays as a tombstone, as after a cancel. The ids are kept for a while, so
-- that `await` does not report them as successes.
--
-- KEYS   the naming block
-- ARGV   1 now override · 2 batch of an operation, or '' · ids…
-- REPLY  OK, then for each: `deleted` | `working` | `success` | `forgotten`; then `out` if effects
--        wait for a relay
-- REFUSE NEWER with the required number · STALE for an earlier carrier of the operation

local meta, tasks, priority, delayed, retry, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5],
  KEYS[6]
local cancelled, workers, success, waiters = KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local skips, tries, errors, blobs, priorities = KEYS[11], KEYS[12], KEYS[13], KEYS[14], KEYS[15]
local deleted, logs, logged, operated = KEYS[16], KEYS[17], KEYS[18], KEYS[19]
local now, batch, asked = now_ms(ARGV[1]), ARGV[2], { select(3, unpack(ARGV)) }
local keys = { meta = meta, tasks = tasks, delayed = delayed, retry = retry, dead = dead,
  cancelled = cancelled, workers = workers, success = success }
local sides = { tries, errors, blobs, priorities }

-- Checks.
local needs = redis.call('HGET', meta, 'needs')
if needs and tonumber(needs) > NEEDS_KNOWN then
  return { 'NEWER', needs }
end
batch = batch_of(operated, batch)
if batch and batch.is_stale then
  return { 'STALE' }
end
local states, open, left, times, records = standings_of(keys, asked)
local from = { delayed = {}, retry = {}, cancelled = {}, dead = {} }
local holders = holders_of(meta, workers, open)
local ids, unranked, in_ready, moves = {}, {}, {}, moves_of(meta)
local drops, leaves = drops_of(meta), leaves_of(meta)
local bytes = { dead = counted_bytes(meta, 'dead'), cancelled = counted_bytes(meta, 'cancelled') }
for nth, id in ipairs(asked) do
  local state = states[id]
  if not state and holders[id] then
    states[id] = 'working'
  elseif state ~= 'deleted' and not is_meant(batch, keys, nth, id, state or 'ready', times[id]) then
    states[id] = state or 'ready'
  elseif not state or from[state] then
    ids[#ids + 1], states[id] = id, 'deleted'
    if state then
      table.insert(from[state], id)
      left[state] = left[state] - 1
      if bytes[state] then
        local kept = kept_bytes(meta, id, nil, records[nth])
        bytes[state] = bytes_without(bytes[state], kept, left[state])
      end
    elseif not redis.call('ZSCORE', priority, id) then
      unranked[#unranked + 1] = id
    end
  end
end
local waiting = waiters_of(meta, waiters, ids)
local flow = flow_of_ends(meta, needs)
if flow then
  sides[#sides + 1] = flow.base .. 'unmet_ended'
  flow.is_left = is_outbox_left(meta)
end
local freed = freed_by(meta, tasks, sides, ids, moves, flow, drops, leaves)
for _, id in ipairs(unranked) do
  if not moves.gone[id] and not drops.gone[id] then
    in_ready[#in_ready + 1] = id
  end
end
pass_permits(moves)
read_drops(drops, now)
read_leaves(leaves)
redis.call('ZCARD', priority)
redis.call('ZCARD', deleted)
redis.call('HGET', meta, 'tombstones')
redis.call('HLEN', skips)
redis.call('HLEN', logs)
redis.call('ZCARD', logged)

-- Writes.
redis.call('ZREM', priority, '')
write_batch(batch, #ids)
local reply, ends, gone = { 'OK' }, {}, {}
for i, id in ipairs(asked) do
  reply[i + 1] = states[id]
end
if #ids == 0 then
  return flow and with_out(reply, flow) or reply
end
for _, state in ipairs(INDEXES) do
  if #from[state] > 0 then
    redis.call('ZREM', keys[state], unpack(from[state]))
  end
end
for _, id in ipairs(in_ready) do
  redis.call('HINCRBY', skips, id, 1)
end
if #in_ready > 0 then
  redis.call('HINCRBY', meta, 'tombstones', #in_ready)
end
write_drop(meta, tasks, sides, ids, freed)
drop_logs(logs, logged, ids)
redis.call('HSET', meta, 'dead_bytes', whole(bytes.dead), 'cancelled_bytes', whole(bytes.cancelled))
for i, id in ipairs(ids) do
  ends[i], gone[2 * i - 1], gone[2 * i] = 'forgotten', whole(now), id
end
redis.call('ZADD', deleted, unpack(gone))
if waiting then
  notify_all(meta, waiters, ids, waiting, ends)
end
write_moves(moves, now)
-- After the next ones of lanes may have joined it.
redis.call('ZREM', priority, unpack(ids))
write_drops(drops)
write_leaves(leaves, now)
if flow then
  flow.write(now)
end
return flow and with_out(reply, flow) or reply
