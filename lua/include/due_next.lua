-- due_next: `due` in `meta`: nothing of `delayed` and `retry` is due before it. It may be too
-- early, which costs one look; it is never too late. Without it, there is nothing in either.

-- Something is due then. A worker may wait for a later time, so it is woken.
local function due_at_latest(meta, wake, hint, due)
  if not hint or due < tonumber(hint) then
    redis.call('HSET', meta, 'due', whole(due))
    ring(wake)
  end
end
