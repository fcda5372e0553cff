-- wakeup: the wakeup list of a queue, a list on which idle workers wait.

-- It holds one token at most: one waiting worker wakes, and writes a wakeup if it leaves work.
local function wake_worker(wake)
  if redis.call('LLEN', wake) == 0 then
    redis.call('RPUSH', wake, '1')
  end
end
