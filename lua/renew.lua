-- renew: Working → Working, a heartbeat: one write renews the lease for all tasks of a worker
--
-- The reply names the tasks that Redis records for the worker, and which of them were asked to
-- stop. So the worker can drop tasks that it has lost and give back tasks that it never received. A
-- lease that is over but was not reaped is renewed: no other worker has the tasks. A worker that
-- holds nothing has a longer lease if many workers serve the queue. The call records that a worker
-- watches the leases. If no worker did for half a lease, the call gives each worker one more whole
-- lease, once. If the clock was set back, the call moves the times that are too late. If a worker
-- that holds nothing finds work in the queue that is ready or due, it writes a wakeup, because an
-- earlier wakeup may be lost with a worker.
--
-- KEYS   the naming block
-- ARGV   1 now override · 2 worker · 3 lease ms
-- REPLY  OK, now ms, ms until the earliest lease of another worker is over (-1: no other), how many
--        workers the queue has, ms of the lease, the held tasks as id, token, …; the ids among them
--        that were asked to stop; ms until a schedule that was made at run time is due, -1: none
-- REFUSE LAPSED

local meta, workers, working, cancel = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local ready, priority, wake = KEYS[5], KEYS[6], KEYS[7]
local now, worker, lease_ms = now_ms(ARGV[1]), ARGV[2], tonumber(ARGV[3])

-- Checks.
if not redis.call('ZSCORE', workers, worker) then
  return { 'LAPSED' }
end
local mending, lease_min = mending_of(meta, workers, now, lease_ms, worker)
local write_back = mending and mending.back and setting_back()(meta, now, mending.back)
local held = all_held(working)
local stopping = asked_to_stop(cancel, working, held)
local peers = redis.call('ZCARD', workers)
-- The one worker that waits for a due time may be frozen.
local is_work_left = #held == 0
  and (redis.call('LLEN', ready) + redis.call('ZCARD', priority) > 0
    or tonumber(redis.call('HGET', meta, 'due') or math.huge) <= now)
if is_work_left then
  redis.call('LLEN', wake)
end
local given_ms, expiry = lease_for(lease_ms, #held, peers, now)
-- A schedule that never is due again has the score `inf`.
local next_tick = redis.call('ZRANGE', string.sub(meta, 1, -5) .. 'schedules', '0', '0',
  'WITHSCORES')[2]
local tick_in = '-1'
if next_tick and next_tick ~= 'inf' then
  tick_in = whole(math.max(next_tick - now, 0))
end

-- Writes.
redis.call('ZREM', workers, '')
mend_leases(meta, workers, mending)
if write_back then
  write_back()
end
redis.call('ZADD', workers, expiry_text(expiry), worker)
redis.call('HSET', meta, 'watched_at', whole(now))
if mending then
  redis.call('HSET', meta, 'lease_min', whole(lease_min))
end
if is_work_left then
  wake_worker(wake)
end
return { 'OK', whole(now), next_expiry_in(workers, worker, now), whole(peers), whole(given_ms),
  held, stopping, tick_in }
