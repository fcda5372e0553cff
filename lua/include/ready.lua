-- ready: the line of tasks. This file alone writes `ready` and `priority`, and it alone rings.

-- One step of priority is worth a minute in line, so a low priority ages but never starves.
local PRIORITY_STEP_MS = 60000

-- A doorbell holds one token at most: one waiter wakes, and rings again if it leaves work behind.
local function ring(wake)
  if redis.call('LLEN', wake) == 0 then
    redis.call('RPUSH', wake, '1')
  end
end

-- The priorities of some tasks, as a list with false for none; nil where no task has any.
local function priorities_of(priorities, ids)
  if #ids == 0 or redis.call('HLEN', priorities) == 0 then
    return nil
  end
  return redis.call('HMGET', priorities, unpack(ids))
end

-- Adds tasks to the line: `at_head` returns them to its front, first one foremost. A task with a
-- priority is ranked by its stamp either way. `ranks` is what priorities_of found, or nil.
local function line_up(ready, priority, wake, ids, stamps, ranks, at_head)
  local entries, ranked, was_empty = {}, {}, false
  for i = 1, #ids do
    local rank = ranks and ranks[i]
    if rank then
      ranked[#ranked + 1] = whole(stamp_ms(stamps[i]) - rank * PRIORITY_STEP_MS)
      ranked[#ranked + 1] = ids[i]
    else
      entries[#entries + 1] = stamps[i] .. ':' .. ids[i]
    end
  end
  if at_head then
    for i = #entries, 1, -1 do
      was_empty = redis.call('LPUSH', ready, entries[i]) == 1 or was_empty
    end
  else
    for first = 1, #entries, 4000 do
      local last = math.min(first + 3999, #entries)
      local length = redis.call('RPUSH', ready, unpack(entries, first, last))
      was_empty = was_empty or length == last - first + 1
    end
  end
  for first = 1, #ranked, 4000 do
    redis.call('ZADD', priority, unpack(ranked, first, math.min(first + 3999, #ranked)))
  end
  if was_empty or #ranked > 0 then
    ring(wake)
  end
end
