-- wish: asks a process to do something, and wakes it, so that it attends
--
-- KEYS   the naming block
-- ARGV   1 the wish
-- REPLY  OK
-- REFUSE ABSENT if the process is not there

local process, wakeup = KEYS[1], KEYS[2]
local wish = ARGV[1]
-- A wakeup that is lost costs only time, because the process attends by itself, too.
local WAKEUP_TTL_MS = '60000'

-- Checks.
if redis.call('HEXISTS', process, 'seen') == 0 then
  return { 'ABSENT' }
end
local wakeups = redis.call('LLEN', wakeup)

-- Writes.
redis.call('HDEL', process, 'wish')
redis.call('HINCRBY', process, 'wishes', 1)
redis.call('HSET', process, 'wish', wish)
if wakeups == 0 then
  redis.call('RPUSH', wakeup, '1')
end
redis.call('PEXPIRE', wakeup, WAKEUP_TTL_MS)
return 'OK'
