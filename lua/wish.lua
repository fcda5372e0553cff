-- wish: asks a process to do something; it obeys when it attends the next time
--
-- KEYS   the naming block
-- ARGV   1 the wish
-- REPLY  OK
-- REFUSE ABSENT if the process is not there

local process = KEYS[1]
local wish = ARGV[1]

-- Checks.
if redis.call('HEXISTS', process, 'seen') == 0 then
  return { 'ABSENT' }
end

-- Writes.
redis.call('HDEL', process, 'wish')
redis.call('HINCRBY', process, 'wishes', 1)
redis.call('HSET', process, 'wish', wish)
return 'OK'
