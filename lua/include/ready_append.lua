-- ready_append: the end of the ready list. Only this include, `ready` and
-- `ready_again` add to it.

-- A wakeup can be lost with the worker that received it. So each call that finds at most SHORT
-- entries writes a wakeup again. A longer list gets one for every STEP entries, which costs a long
-- queue very little.
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
