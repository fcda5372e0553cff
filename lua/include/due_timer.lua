-- due_timer: which worker of a queue waits for the next due time, `<worker> <due>` in `meta`.

-- Returns whether this worker waits for the next due time.
local function is_timer(timer, worker)
  return timer and string.match(timer, '^(.+) %d+$') == worker
end
