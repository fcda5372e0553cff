-- claim: Ready → Working, up to 128; what is due (Delayed, Retry) becomes Ready on the way
--
-- Grants a worker tasks from the line under one token `<claim seq>:<fence>`. Asked again with the
-- same seq it repeats what that claim granted and the worker still holds. Entries whose task was
-- cancelled or lined up anew are dropped; they can exist only while `tombstones` is above zero.
--
-- KEYS   the naming block
-- ARGV   1 now override · 2 worker · 3 claim seq · 4 how many
-- REPLY  OK, token, now ms, '1' if work is left, ms until the next task is due (-1: none),
--        entries `<stamp>:<id>`, records, tries (empty if none of the queue's tasks has any)
-- REFUSE LAPSED · STALE · PAUSED

local meta, tasks, ready, priority, priorities = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local delayed, retry, restamp, cancelled = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local workers, worker_info, working, tries, wake = KEYS[10], KEYS[11], KEYS[12], KEYS[13], KEYS[14]
local now, worker, seq, want = now_ms(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4])
local CLAIM_MAX = 128
local ID_LENGTH = 22

-- Checks.
local expiry = redis.call('ZSCORE', workers, worker)
if not expiry or tonumber(expiry) <= now then
  return { 'LAPSED' }
end
local last = redis.call('HMGET', worker_info, 'seq', 'token')
if last[1] and tonumber(seq) < tonumber(last[1]) then
  return { 'STALE' }
end
local flags = redis.call('HMGET', meta, 'paused', 'fence', 'tombstones')

local function tries_among(ids)
  if #ids > 0 and redis.call('HLEN', tries) > 0 then
    return redis.call('HMGET', tries, unpack(ids))
  end
  return {}
end

if last[1] == seq then
  local held, ids, entries = redis.call('HGETALL', working), {}, {}
  for i = 1, #held, 2 do
    if held[i + 1] == last[2] then
      ids[#ids + 1] = held[i]
    end
  end
  local records = {}
  if #ids > 0 then
    records = redis.call('HMGET', tasks, unpack(ids))
    local stamps = stamps_of(restamp, ids, records)
    for i = 1, #ids do
      entries[i] = stamps[i] .. ':' .. ids[i]
    end
  end
  return { 'OK', last[2], whole(now), '1', '-1', entries, records, tries_among(ids) }
end
if flags[1] then
  return { 'PAUSED' }
end

want = math.min(want, CLAIM_MAX)
redis.call('HLEN', working)
redis.call('LLEN', wake)
local line_length = redis.call('LLEN', ready)
local line, ranked = {}, {}
if want > 0 then
  line = line_length > 0 and redis.call('LRANGE', ready, 0, want - 1) or {}
  ranked = redis.call('ZRANGE', priority, 0, want - 1, 'WITHSCORES')
end
local due_delayed, next_delayed = due_in(delayed, now)
local due_retry, next_retry = due_in(retry, now)
local due = {}
for i = 1, #due_delayed do
  due[i] = due_delayed[i]
end
for i = 1, #due_retry do
  due[#due + 1] = due_retry[i]
end
local due_ranks = priorities_of(priorities, due)
local due_stamps, stamp = {}, #due > 0 and stamp_of(now)
if #due > 0 then
  local restamped = redis.call('HLEN', restamp) > 0 and redis.call('HMGET', restamp, unpack(due))
  for i = 1, #due do
    due_stamps[i] = restamped and restamped[i] or stamp
  end
end

-- The line, merged with the ranked by score; what has just become due follows, if room is left.
local entries, ids, from_line, unranked = {}, {}, 0, {}
local next_ranked = 1
while #entries < want do
  local entry, id = line[from_line + 1], ranked[next_ranked]
  if id and (not entry or tonumber(ranked[next_ranked + 1]) < stamp_ms(entry_stamp(entry))) then
    unranked[#unranked + 1] = id
    entries[#entries + 1] = false
    ids[#ids + 1] = id
    next_ranked = next_ranked + 2
  elseif entry then
    from_line = from_line + 1
    entries[#entries + 1] = entry
    ids[#ids + 1] = entry_id(entry)
  else
    break
  end
end
local started = 0
while #entries < want and started < #due and not (due_ranks and due_ranks[started + 1]) do
  started = started + 1
  entries[#entries + 1] = due_stamps[started] .. ':' .. due[started]
  ids[#ids + 1] = due[started]
end

local records, dropped = {}, 0
if #ids > 0 then
  records = redis.call('HMGET', tasks, unpack(ids))
  if #unranked > 0 then
    local stamps = stamps_of(restamp, ids, records)
    for i = 1, #ids do
      entries[i] = entries[i] or (stamps[i] .. ':' .. ids[i])
    end
  end
  local doubtful = tonumber(flags[3] or 0) > 0
  local gone = doubtful and redis.call('ZMSCORE', cancelled, unpack(ids))
  local stamps = doubtful and redis.call('HMGET', restamp, unpack(ids))
  local kept_entries, kept_ids, kept_records = {}, {}, {}
  for i = 1, #ids do
    local valid = records[i] and #ids[i] == ID_LENGTH
    if valid and doubtful then
      valid = not gone[i] and (not stamps[i] or stamps[i] == entry_stamp(entries[i]))
    end
    if valid then
      kept_entries[#kept_entries + 1] = entries[i]
      kept_ids[#kept_ids + 1] = ids[i]
      kept_records[#kept_records + 1] = records[i]
    else
      dropped = dropped + 1
    end
  end
  entries, ids, records = kept_entries, kept_ids, kept_records
end
local left = line_length - from_line + redis.call('ZCARD', priority) - #unranked + #due - started
local next_due = earlier(next_delayed, next_retry)
local more = left > 0 or (next_due and next_due <= now)
local counts = tries_among(ids)
local fence = math.max(tonumber(flags[2] or 0) + 1, now * 1024)
local token = seq .. ':' .. whole(fence)

-- Writes.
if from_line > 0 then
  redis.call('LTRIM', ready, from_line, -1)
end
if #unranked > 0 then
  redis.call('ZREM', priority, unpack(unranked))
end
if #due_delayed > 0 then
  redis.call('ZREM', delayed, unpack(due_delayed))
end
if #due_retry > 0 then
  redis.call('ZREM', retry, unpack(due_retry))
end
if started < #due then
  local rest, rest_stamps, rest_ranks = {}, {}, due_ranks and {}
  for i = started + 1, #due do
    rest[#rest + 1] = due[i]
    rest_stamps[#rest] = due_stamps[i]
    if rest_ranks then
      rest_ranks[#rest] = due_ranks[i]
    end
  end
  line_up(ready, priority, wake, rest, rest_stamps, rest_ranks, false)
end
if dropped > 0 then
  local tombstones = math.max(0, tonumber(flags[3] or 0) - dropped)
  redis.call('HSET', meta, 'tombstones', whole(tombstones))
end
if #ids > 0 then
  local granted = {}
  for i = 1, #ids do
    granted[2 * i - 1] = ids[i]
    granted[2 * i] = token
  end
  redis.call('HSET', working, unpack(granted))
  redis.call('HSET', worker_info, 'seq', seq, 'token', token)
  redis.call('HSET', meta, 'fence', whole(fence))
end
if more then
  ring(wake)
end
local wait = next_due and whole(math.max(0, next_due - now)) or '-1'
return { 'OK', token, whole(now), more and '1' or '0', wait, entries, records, counts }
