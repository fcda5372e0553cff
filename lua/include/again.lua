-- again: tasks that were out of the line come back to its front.

-- Returns tasks to the front of the line, first one foremost, in it since their birth.
local function line_up_again(ready, priority, wake, ids, ranks, now)
  local plain, ranked, theirs = split(ids, ranks)
  for i = #plain, 1, -1 do
    if redis.call('LPUSH', ready, plain[i]) == 1 then
      ring(wake)
    end
  end
  local births = {}
  for i = 1, #ranked do
    births[i] = math.min(born_ms(ranked[i]), now)
  end
  rank(priority, wake, ranked, theirs, now, births)
end
