-- pause: pauses or resumes a queue; no task of a paused queue is claimed
--
-- KEYS   the naming block
-- ARGV   1 now override · 2 '1' to pause, '0' to resume
-- REPLY  OK, '1' if the queue was used before: a task was submitted to it or a worker served it

local meta, tasks, wake = KEYS[1], KEYS[2], KEYS[3]
local now, paused = now_ms(ARGV[1]), ARGV[2] == '1'

-- Checks.
local is_used = redis.call('HLEN', tasks) > 0
  or redis.call('HLEN', meta) > redis.call('HEXISTS', meta, 'paused')
redis.call('HLEN', meta)
redis.call('LLEN', wake)

-- Writes.
redis.call('HDEL', meta, paused and '' or 'paused')
if paused then
  redis.call('HSET', meta, 'paused', whole(now))
elseif is_used then
  -- A queue that was never used is never retired, so it gets no key.
  wake_worker(wake)
end
return { 'OK', is_used and '1' or '0' }
