-- interrupt: ends a worker's own wait for work
--
-- A worker calls this if it waits for too few queues, or must leave. If the wait has just ended by
-- itself, the token stays. It then ends the next wait, or expires if the worker has died.
--
-- KEYS   the naming block
-- REPLY  OK

local interrupt = KEYS[1]
local INTERRUPT_TTL_MS = '60000'

-- Checks.
local tokens = redis.call('LLEN', interrupt)

-- Writes.
redis.call('LTRIM', interrupt, '0', '-1')
if tokens == 0 then
  redis.call('RPUSH', interrupt, '1')
end
redis.call('PEXPIRE', interrupt, INTERRUPT_TTL_MS)
return 'OK'
