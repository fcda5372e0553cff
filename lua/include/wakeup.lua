-- wakeup: the wakeup list of a queue, a list on which idle workers wait.

-- It holds one token at most: one waiter wakes, and rings again if it leaves work behind.
local function ring(wake)
  if redis.call('LLEN', wake) == 0 then
    redis.call('RPUSH', wake, '1')
  end
end
