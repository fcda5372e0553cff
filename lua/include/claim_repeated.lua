-- claim_repeated: the answer to a claim whose first reply may be lost.

-- Returns the reply for the tasks of that claim that the worker still holds.
local function repeated_claim(working, tasks, tries, last, now)
  local ids, token = {}, string.match(last, '^%d+:%d+')
  local held = redis.call('HGETALL', working)
  for i = 1, #held, 2 do
    if held[i + 1] == token then
      ids[#ids + 1] = held[i]
    end
  end
  local records = #ids > 0 and redis.call('HMGET', tasks, unpack(ids)) or {}
  return granted(token, now, true, -1, ids, records, tries)
end
