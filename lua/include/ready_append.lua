-- ready_append: the end of the ready list. Only this file, `ready` and `again` add to it.

-- A wakeup can be lost with the worker that took it. So each call that finds at most SHORT entries
-- wakes a worker again, and a longer list wakes one for every STEP entries, which costs a deep
-- queue next to nothing.
local SHORT, STEP = 16, 64

-- Adds entries of tasks without a priority to the end of the ready list.
local function append(ready, wake, entries)
  local count = #entries
  for first = 1, count, 4000 do
    local last = math.min(first + 3999, count)
    local length, added = redis.call('RPUSH', ready, unpack(entries, first, last)), last - first + 1
    if length - added <= SHORT or length % STEP < added then
      wake_worker(wake)
    end
  end
end
