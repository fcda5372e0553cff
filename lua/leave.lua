-- leave: a worker of this queue → ∅
--
-- This is the last call of a worker that has reported or given back every task it held. A worker
-- that still holds a task stays registered, and the reaper collects it. If the worker waits for the
-- next due time, another worker is woken and takes over.
--
-- KEYS   the naming block
-- ARGV   1 worker
-- REPLY  OK, how many tasks it still holds

local workers, worker_info, working, meta, wake = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local worker = ARGV[1]

-- Checks.
local held = count_held(working)
redis.call('ZCARD', workers)
redis.call('HLEN', worker_info)
redis.call('LLEN', wake)
local was_timer = is_timer(redis.call('HGET', meta, 'timer'), worker)
if held > 0 then
  return { 'OK', held }
end

-- Writes.
redis.call('ZREM', workers, worker)
redis.call('UNLINK', worker_info, working)
if was_timer then
  redis.call('HDEL', meta, 'timer')
  wake_worker(wake)
end
return { 'OK', '0' }
