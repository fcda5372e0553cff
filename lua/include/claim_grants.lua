-- claim_grants: the reply of a claim.

-- Returns the ids that have a record, and the records. An id without a record is a sign of damage;
-- it is omitted.
local function with_records(tasks, ids)
  if #ids <= 1 then
    local record = ids[1] and redis.call('HGET', tasks, ids[1])
    return record and ids or {}, { record or nil }
  end
  local records, whole_ones = redis.call('HMGET', tasks, unpack(ids)), true
  for i = 1, #ids do
    whole_ones = whole_ones and records[i]
  end
  if whole_ones then
    return ids, records
  end
  local kept_ids, kept_records = {}, {}
  for i = 1, #ids do
    if records[i] then
      kept_ids[#kept_ids + 1] = ids[i]
      kept_records[#kept_records + 1] = records[i]
    end
  end
  return kept_ids, kept_records
end

-- Returns the reply. It is one list, because each list within a reply costs Redis as much as a
-- command. `tries` is the key of the tries, or nil if none of these tasks was tried before.
local function granted(token, now, more, wait, ids, records, tries)
  local count = #ids
  local reply = { 'OK', token, now, more and 1 or 0, wait, count, unpack(ids) }
  local ids_end = #reply
  for i = 1, count do
    reply[ids_end + i] = records[i] or ''
  end
  if tries and count > 0 and redis.call('HLEN', tries) > 0 then
    local stored = redis.call('HMGET', tries, unpack(ids))
    for i = 1, count do
      reply[ids_end + count + i] = stored[i] or ''
    end
  end
  return reply
end
