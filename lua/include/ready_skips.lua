-- ready_skips: tombstones. A cancelled task's entry stays in the ready list, because removing it
-- from the middle of a long list would take tens of ms. `skips` counts such entries by id,
-- `tombstones` in `meta` counts all of them. A requeued task that cannot expire and is
-- ready at once has its entry again. Another one gets a second entry, at once or later, and the
-- first of the two is skipped.

-- Returns how many entries of each of these tasks must be skipped, by id.
local function skips_of(skips, entries)
  local ids = {}
  for i = 1, #entries do
    ids[i] = entry_id(entries[i]) or ''
  end
  local counts, by_id = redis.call('HMGET', skips, unpack(ids)), {}
  for i = 1, #ids do
    by_id[ids[i]] = tonumber(counts[i] or 0)
  end
  return by_id
end

-- Removes the skipped tombstones from the counts: `passed` and `before` are counts by id.
local function strike_off(skips, meta, passed, before)
  local all = 0
  for id, count in pairs(passed) do
    all = all + count
    if before[id] > count then
      redis.call('HSET', skips, id, whole(before[id] - count))
    else
      redis.call('HDEL', skips, id)
    end
  end
  if all > 0 then
    redis.call('HINCRBY', meta, 'tombstones', whole(-all))
  end
end
