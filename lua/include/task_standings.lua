-- task_standings: the places of many tasks. A key without entries is read once for all tasks.

-- Returns the state of each id, or false for a task that is working or ready; the ids of those; and
-- how many tasks each key has.
local function standings_of(keys, ids)
  local states, open, sizes = {}, {}, {}
  keys.filled, keys.many = {}, #ids > 1
  for _, state in ipairs(INDEXES) do
    sizes[state] = redis.call('ZCARD', keys[state])
    if sizes[state] > 0 then
      table.insert(keys.filled, state)
    end
  end
  for _, id in ipairs(ids) do
    if states[id] == nil then
      states[id] = standing(keys, id) or false
      if not states[id] then
        open[#open + 1] = id
      end
    end
  end
  return states, open, sizes
end
