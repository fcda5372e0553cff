-- task_standings: the places of many tasks. A key without entries is read once for all tasks.

-- Returns the state of each id, or false for a task that is working or ready; the ids of those; how
-- many tasks each key has; and the time when each task is due or ended, by id.
local function standings_of(keys, ids)
  local states, open, sizes, times = {}, {}, {}, {}
  keys.filled, keys.many = {}, #ids > 1
  for _, state in ipairs(INDEXES) do
    sizes[state] = redis.call('ZCARD', keys[state])
    if sizes[state] > 0 then
      table.insert(keys.filled, state)
    end
  end
  for _, id in ipairs(ids) do
    if states[id] == nil then
      local state, at = standing(keys, id)
      states[id], times[id] = state or false, at
      if not state then
        open[#open + 1] = id
      end
    end
  end
  return states, open, sizes, times
end
