-- due_next: `due` in `meta`: no task in `delayed` and `retry` is due before that time. The time may
-- be too early, which costs one check. It is never too late. If `due` is absent, both keys are
-- empty.

-- What this call has written, which is earlier than any hint that it has read.
local due_written = nil

-- Records that a task, or a run, is due at that time, and wakes a worker, because one may wait for
-- a later time.
local function due_at_latest(meta, wake, hint, due)
  local known = due_written or hint and tonumber(hint)
  if not known or due < known then
    due_written = due
    redis.call('HSET', meta, 'due', whole(due))
    wake_worker(wake)
  end
end
