-- wakeup: the wakeup list of a queue, a list on which idle workers wait.

-- The list holds at most one token, so one waiting worker wakes. This worker writes a wakeup if it
-- leaves work.
local function wake_worker(wake)
  if redis.call('LLEN', wake) == 0 then
    redis.call('RPUSH', wake, '1')
  end
end
