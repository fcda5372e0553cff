-- interrupt: ends a worker's own wait for work
--
-- It waits for too few queues, or is to leave. A token that no wait takes, since it ended by itself
-- just then, ends the next one, or goes by itself where the worker has died.
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
