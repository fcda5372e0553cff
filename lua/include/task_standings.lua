-- task_standings: the places of many tasks. Each key is read once for all tasks.

-- Returns the state of each id, or false for a task that is working or ready; the ids of those; how
-- many tasks each key has; the time when each task is due or ended, by id; and the records, in the
-- order of the ids.
local function standings_of(keys, ids)
  local states, open, sizes, times, found = {}, {}, {}, {}, {}
  keys.many = #ids > 1
  for _, state in ipairs(INDEXES) do
    sizes[state] = redis.call('ZCARD', keys[state])
    if sizes[state] > 0 and #ids > 0 then
      found[#found + 1] = { state = state, times = redis.call('ZMSCORE', keys[state], unpack(ids)) }
    end
  end
  local records = #ids > 0 and redis.call('HMGET', keys.tasks, unpack(ids)) or {}
  for nth, id in ipairs(ids) do
    local state, at = false, nil
    if not records[nth] then
      state, at = state_without_record(keys, id), ''
    end
    for i = 1, state and 0 or #found do
      at = found[i].times[nth]
      if at then
        state = found[i].state
        break
      end
    end
    if states[id] == nil then
      states[id], times[id] = state, at
      if not state then
        open[#open + 1] = id
      end
    end
  end
  return states, open, sizes, times, records
end
