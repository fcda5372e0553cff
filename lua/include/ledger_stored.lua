-- ledger_stored: whether a task that has no record has succeeded, if no summary shows it. Replicas,
-- files and restored copies hold a prefix of the history, so a task may never have been stored
-- there.

-- Returns whether this history has stored the call with that number: its slot has that call or a
-- later one, and the ledger does not record the call as lost.
local function was_stored(ledger, slot, number)
  if number == '' then
    return false
  end
  local answers = redis.call('HMGET', ledger, slot, 'lost' .. slot)
  number = tonumber(number)
  for before, after in string.gmatch(answers[2] or '', '(%d+) (%d+)') do
    if tonumber(before) < number and number < tonumber(after) then
      return false
    end
  end
  return tonumber(string.match(answers[1] or '0', '^%d+')) >= number
end

-- Returns whether the task may have been removed without success: either a task born at this time
-- or later was purged, which may be this one, or this task was deleted. `removed` caches the values
-- that one call reads.
local function was_removed(meta, id, removed)
  if not removed.born then
    removed.born = tonumber(redis.call('HGET', meta, 'purged_born') or -1)
    removed.deleted = string.sub(meta, 1, -5) .. 'deleted'
    removed.is_any_deleted = redis.call('ZCARD', removed.deleted) > 0
  end
  return born_ms(id) <= removed.born
    or removed.is_any_deleted and redis.call('ZSCORE', removed.deleted, id)
end
