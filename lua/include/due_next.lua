-- due_next: `due` in `meta`: no task in `delayed` and `retry` is due before that time. The time may
-- be too early, which costs one check. It is never too late. If `due` is absent, both keys are
-- empty.

-- Records that a task, or a run, is due at that time, and wakes a worker, because one may wait for
-- a later time.
local function due_at_latest(meta, wake, hint, due)
  if not hint or due < tonumber(hint) then
    redis.call('HSET', meta, 'due', whole(due))
    wake_worker(wake)
  end
end
