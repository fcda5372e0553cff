-- rouse: ends a worker's own wait for work
--
-- It waits for too few queues, or is to leave. A token that no wait takes, since it ended by itself
-- just then, ends the next one, or goes by itself where the worker has died.
--
-- KEYS   the naming block
-- REPLY  OK

local rouse = KEYS[1]
local ROUSE_TTL_MS = '60000'

-- Checks.
local tokens = redis.call('LLEN', rouse)

-- Writes.
redis.call('LTRIM', rouse, '0', '-1')
if tokens == 0 then
  redis.call('RPUSH', rouse, '1')
end
redis.call('PEXPIRE', rouse, ROUSE_TTL_MS)
return 'OK'
