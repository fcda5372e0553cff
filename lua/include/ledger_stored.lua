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

-- Whether a task born as late as this one was removed without success, so that it may be this one.
-- `purge` keeps the latest birth of those.
local function was_purged(meta, id)
  local latest = redis.call('HGET', meta, 'purged_born')
  return latest and born_ms(id) <= tonumber(latest)
end
