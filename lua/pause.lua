-- pause: a queue on or off; nothing is claimed from it while it is paused
--
-- KEYS   the naming block
-- ARGV   1 now override · 2 '1' to pause, '0' to resume
-- REPLY  OK

local meta, wake = KEYS[1], KEYS[2]
local now, paused = now_ms(ARGV[1]), ARGV[2] == '1'

-- Checks.
redis.call('HLEN', meta)
redis.call('LLEN', wake)

-- Writes.
redis.call('HDEL', meta, paused and '' or 'paused')
if paused then
  redis.call('HSET', meta, 'paused', whole(now))
else
  ring(wake)
end
return { 'OK' }
