-- ready_again: tasks that return to the front of the ready list.

-- Returns tasks to the front of the ready list, in their order. They count as ready since their
-- birth. Their entries have stamps, which show a claim that they may have been tried.
local function add_ready_again(ready, priority, wake, ids, ranks, now)
  local plain, ranked, theirs = split(ids, ranks)
  local entries, count = {}, #plain
  for i = 1, count do
    entries[count + 1 - i] = stamp_of(math.min(born_ms(plain[i]), now)) .. ':' .. plain[i]
  end
  if count > 0 and redis.call('LPUSH', ready, unpack(entries)) - count <= SHORT then
    wake_worker(wake)
  end
  local births = {}
  for i = 1, #ranked do
    births[i] = math.min(born_ms(ranked[i]), now)
  end
  rank(priority, wake, ranked, theirs, now, births)
end
