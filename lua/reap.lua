-- reap: Working → Ready | Dead | Cancelled, up to 128 tasks of workers whose lease is over
--
-- The script counts losses separately from failures. A task that was lost `max_losses` times is
-- marked Dead if it ran alone the last time, so that a task that kills its worker does not end the
-- other tasks of that worker. A task whose `on_lost` is `dead` is marked Dead at once. Other tasks
-- go back to the head of the ready list and keep the permit of their lane; a task that ends passes
-- it on. If a task led a run and had not collected the others, the next one leads at once. After a
-- time in which no worker watched the leases, each worker first gets one more whole lease, once. If
-- work is left or a task is due later, another worker is woken, because a reaped worker may have
-- received the wakeup, or may have been the worker that waited for the due time.
--
-- KEYS   the naming block
-- ARGV   1 now override · 2 the caller's lease ms · 3 how many · 4 the calling worker
-- REPLY  OK, how many were reaped, '1' if more is due, ms until the next lease of another worker is
--        over (-1: none), the workers whose lease was over; for each task that was lost: id,
--        worker, task ('' if its record does not show it), attempt, the state in which it is now,
--        with which it ran ('' if it ran alone)
-- REFUSE NEWER with the required number

local meta, tasks, workers, ready, priority = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local priorities, dead, cancelled, tries = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local errors, cancel, waiters, wake = KEYS[10], KEYS[11], KEYS[12], KEYS[13]
local now, lease_ms, limit = now_ms(ARGV[1]), tonumber(ARGV[2]), math.min(tonumber(ARGV[3]), 128)
local self = ARGV[4]
local queue = { meta = meta, dead = dead, cancelled = cancelled, cancel = cancel,
  waiters = waiters }
local WORKERS_MAX = 16

-- Checks.
local flags = redis.call('HMGET', meta, 'needs', 'timer', 'due')
local needs, timer, lost_timer = flags[1], flags[2], false
if needs and tonumber(needs) > NEEDS_KNOWN then
  return { 'NEWER', needs }
end
local mending, lease_min = mending_of(meta, workers, now, lease_ms, '')
local write_back = mending and mending.back and setting_back()(meta, now, mending.back)
local is_raised, lapsed = {}, {}
for _, change in ipairs(mending or {}) do
  is_raised[change.worker] = change.is_raised
end
local over = redis.call('ZRANGEBYSCORE', workers, '-inf', whole(now), 'LIMIT', 0, WORKERS_MAX)
for _, worker in ipairs(over) do
  if not is_raised[worker] then
    lapsed[#lapsed + 1] = worker
  end
end
local ids, holders, solo, emptied, more = {}, {}, {}, {}, #over == WORKERS_MAX
local lost = {}
for _, worker in ipairs(lapsed) do
  local working = key_of(meta, 'working', worker)
  local size, before, alone = count_held(working), #ids, is_alone(working)
  redis.call('HLEN', key_of(meta, 'worker', worker))
  if size > 0 and #ids < limit then
    for _, id in ipairs(some_held(working, limit - #ids)) do
      ids[#ids + 1] = id
      holders[#ids], solo[#ids] = worker, alone
    end
  end
  if #ids - before < size then
    more = true
  else
    emptied[#emptied + 1] = worker
    lost_timer = lost_timer or is_timer(timer, worker)
  end
end
local is_somebody_left = redis.call('ZCARD', workers) > #emptied
local records, counts, histories, tried, ranks = {}, {}, {}, nil, nil
if #ids > 0 then
  records = redis.call('HMGET', tasks, unpack(ids))
  counts, tried = redis.call('HMGET', tries, unpack(ids)), redis.call('HLEN', tries)
  histories = redis.call('HMGET', errors, unpack(ids))
  ranks = priorities_of(priorities, ids)
end
local is_work_left = redis.call('LLEN', ready) + redis.call('ZCARD', priority) > 0 or flags[3]
redis.call('LLEN', wake)
queue.flow = flow_of_ends(meta, needs)
local permits = permits_of(meta, ids)
local endings = endings_of(queue, ids)
local moves, leaves = moves_of(meta), leaves_of(meta)
local back, back_ranks, now_counts, now_histories = {}, ranks and {}, {}, {}
local due, due_first, deaths = {}, nil, nil
for i, id in ipairs(ids) do
  if records[i] then
    local header, failures, losses = header_of(records[i]), tries_of(counts[i])
    losses = losses + 1
    drop_from_gather(leaves, {}, header, id, counts[i])
    now_counts[#now_counts + 1] = id
    now_counts[#now_counts + 1] = tries_after(counts[i], '0:1:0', 0, 1, 1)
    local history = errors_with(histories[i], whole(now),
      '{"reason":"lost","attempt":' .. whole(failures + losses) .. ',"worker":"' .. holders[i]
      .. '"}')
    now_histories[#now_histories + 1] = id
    now_histories[#now_histories + 1] = history
    local state = 'ready'
    if endings.intents[i] then
      state = 'cancelled'
      note_cancelled(queue, endings, i, id, header, history)
      lane_report(moves, id, records[i], state)
    elseif dies_of_loss(header, losses, solo[i]) then
      note_end(endings, i, id, 'dead', history)
      deaths = deaths or dying()(meta, now)
      deaths.note(id, history, key_of(meta, 'working', holders[i]))
      state = 'dead'
      lane_report(moves, id, records[i], state)
    elseif gathers_again(header, losses) then
      -- The next claim lets it join those with which it runs.
      state = 'delayed'
      local due_at = math.min(born_ms(id), now)
      due[#due + 1], due[#due + 2] = whole(due_at), id
      due_first = math.min(due_first or due_at, due_at)
    else
      back[#back + 1] = id
      if back_ranks then
        back_ranks[#back] = ranks[i]
      end
    end
    local task = string.match(tostring(header.t or ''), '^[%w._-]+$') or ''
    local run = gathering_of('', header, counts[i])
    local run_name = run and run.name or ''
    local attempt = whole(failures + losses)
    for _, word in ipairs({ id, holders[i], task, attempt, state, run_name }) do
      lost[#lost + 1] = word
    end
  end
end
pass_permits(moves)
if deaths then
  deaths.read()
end
read_leaves(leaves)
local delayed, later = string.sub(meta, 1, -5) .. 'delayed', 0
if #due > 0 then
  later = redis.call('ZCARD', delayed)
end
if #leaves.due > 0 then
  due_first = math.min(due_first or now, now)
end

-- Writes.
redis.call('ZREM', workers, '')
mend_leases(meta, workers, mending)
if write_back then
  write_back()
end
if mending then
  redis.call('HSET', meta, 'watched_at', whole(now), 'lease_min', whole(lease_min))
end
for i, id in ipairs(ids) do
  redis.call('HDEL', key_of(meta, 'working', holders[i]), id)
end
if #now_counts > 0 then
  hset_as_table(tries, tried, now_counts)
  redis.call('HSET', errors, unpack(now_histories))
  redis.call('HINCRBY', meta, 'losses', whole(#now_counts / 2))
end
write_ends(queue, endings, now)
if deaths then
  deaths.write()
end
if #back > 0 then
  add_ready_again(ready, priority, wake, back, back_ranks, now)
end
leave_gathers(leaves, now)
if #due > 0 then
  zadd_as_table(delayed, later, due)
end
if due_first then
  due_at_latest(meta, wake, flags[3], due_first)
end
write_moves(moves, now)
if permits then
  give_back(permits, now)
end
for _, worker in ipairs(emptied) do
  redis.call('ZREM', workers, worker)
  redis.call('UNLINK', key_of(meta, 'worker', worker), key_of(meta, 'working', worker))
end
if lost_timer then
  redis.call('HDEL', meta, 'timer')
end
if #emptied > 0 and is_work_left then
  wake_worker(wake)
end
local next_expiry = is_somebody_left and next_expiry_in(workers, self, now) or '-1'
return { 'OK', whole(#ids), more and '1' or '0', next_expiry, lapsed, lost }
