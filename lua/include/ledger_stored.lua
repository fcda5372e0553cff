-- ledger_stored: whether a task that has no record has succeeded, where no summary tells. Replicas,
-- files and restored copies hold a prefix of what was done, so a task may never have been there.

-- Whether this history has stored the call of that number: its slot has a call as late, and it is
-- none of those that the ledger knows to be lost.
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

-- Whether the task may have been removed without success: one born as late was purged, so that it
-- may be this one, or it was deleted. `removed` is of a call, and holds what it has read of that.
local function was_removed(meta, id, removed)
  if not removed.born then
    removed.born = tonumber(redis.call('HGET', meta, 'purged_born') or -1)
    removed.deleted = string.sub(meta, 1, -5) .. 'deleted'
    removed.is_any_deleted = redis.call('ZCARD', removed.deleted) > 0
  end
  return born_ms(id) <= removed.born
    or removed.is_any_deleted and redis.call('ZSCORE', removed.deleted, id)
end
