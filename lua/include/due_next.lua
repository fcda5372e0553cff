-- due_next: `due` in `meta`: nothing in `delayed` and `retry` is due before it. It may be too
-- early, which costs one check. It is never too late. Without it, both keys are empty.

-- Records that a task is due at that time. A worker may wait for a later time, so it is woken.
local function due_at_latest(meta, wake, hint, due)
  if not hint or due < tonumber(hint) then
    redis.call('HSET', meta, 'due', whole(due))
    wake_worker(wake)
  end
end
