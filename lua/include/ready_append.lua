-- ready_append: the end of the ready list. Only this file, `ready` and `again` add to it.

-- Adds entries of tasks without a priority to the end of the ready list.
local function append(ready, wake, entries)
  local count = #entries
  for first = 1, count, 4000 do
    local last = math.min(first + 3999, count)
    if redis.call('RPUSH', ready, unpack(entries, first, last)) == last - first + 1 then
      ring(wake)
    end
  end
end
