-- claim: Ready → Working, up to 128; what is due (Delayed, Retry) becomes Ready on the way
--
-- Grants a worker tasks from the line under one token `<claim seq>:<fence>`. Asked again with the
-- same seq it repeats what that claim granted and the worker still holds. Tombstones are passed
-- over; there are none while `tombstones` is zero.
--
-- KEYS   the naming block
-- ARGV   1 now override · 2 worker · 3 claim seq · 4 how many
-- REPLY  OK, token, now ms, 1 if work is left, ms until the next task is due (-1: none), ids,
--        records, tries (empty if none of the queue's tasks has any)
-- REFUSE LAPSED · STALE · PAUSED

local meta, tasks, ready, priority, priorities = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local delayed, retry, skips, workers = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local working, tries, wake = KEYS[10], KEYS[11], KEYS[12]
local now, worker, seq = now_ms(ARGV[1]), ARGV[2], ARGV[3]
local want, want_text = tonumber(ARGV[4]), ARGV[4]
local CLAIM_MAX = 128

-- Checks.
local expiry = redis.call('ZSCORE', workers, worker)
if not expiry or tonumber(expiry) <= now then
  return { 'LAPSED' }
end
local last_token, last_seq = last_claim(working)
if last_seq and last_seq ~= seq and tonumber(seq) < tonumber(last_seq) then
  return { 'STALE' }
end
local flags = redis.call('HMGET', meta, 'paused', 'fence', 'tombstones')
local used = redis.call('EXISTS', priority, delayed, retry, tries) > 0

local function tries_among(ids)
  if used and #ids > 0 and redis.call('HLEN', tries) > 0 then
    return redis.call('HMGET', tries, unpack(ids))
  end
  return {}
end

if last_seq == seq then
  local ids, held = {}, all_held(working)
  for i = 1, #held, 2 do
    if held[i + 1] == last_token then
      ids[#ids + 1] = held[i]
    end
  end
  local records = #ids > 0 and redis.call('HMGET', tasks, unpack(ids)) or {}
  return { 'OK', last_token, now, 1, -1, ids, records, tries_among(ids) }
end
if flags[1] then
  return { 'PAUSED' }
end

-- One more than wanted is looked at, to know whether work is left.
if want > CLAIM_MAX then
  want, want_text = CLAIM_MAX, '128'
end
local line, ranked = redis.call('LRANGE', ready, '0', want_text), {}
local due_delayed, due_retry, due, due_ranks, next_due = {}, {}, {}, nil, nil
if used then
  ranked = redis.call('ZRANGE', priority, '0', want_text, 'WITHSCORES')
  local next_delayed, next_retry
  due_delayed, next_delayed = due_in(delayed, now)
  due_retry, next_retry = due_in(retry, now)
  next_due = earlier(next_delayed, next_retry)
  for i = 1, #due_delayed do
    due[i] = due_delayed[i]
  end
  for i = 1, #due_retry do
    due[#due + 1] = due_retry[i]
  end
  due_ranks = priorities_of(priorities, due)
end

local ids, from_line, unranked, passed, started, skip = nil, 0, {}, {}, 0, {}
local may_skip = tonumber(flags[3] or 0) > 0
local line_length, ranked_length = #line, #ranked
if may_skip or ranked_length > 0 then
  skip = may_skip and line_length > 0 and skips_of(skips, line) or skip
  ids, from_line, unranked, passed = merged_ids(line, ranked, skip, want)
else
  ids, from_line = plain_ids(line, want)
end
-- Behind the line, unless tombstones were all of it that was looked at.
while #ids < want and line_length <= want and started < #due
  and not (due_ranks and due_ranks[started + 1]) do
  started = started + 1
  ids[#ids + 1] = due[started]
end
local more = line_length > want or line_length > from_line or ranked_length > 2 * #unranked
  or #due > started or (next_due and next_due <= now)
local records = #ids > 0 and redis.call('HMGET', tasks, unpack(ids)) or {}
ids, records = with_records(ids, records)
local counts = tries_among(ids)
local fence = whole(math.max(tonumber(flags[2] or 0) + 1, now * 1024))
local token = seq .. ':' .. fence
redis.call('LLEN', wake)

-- Writes.
if from_line > 0 or more then
  redis.call('LTRIM', ready, whole(from_line), '-1')
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
  local rest, rest_ranks = {}, due_ranks and {}
  for i = started + 1, #due do
    rest[#rest + 1] = due[i]
    if rest_ranks then
      rest_ranks[#rest] = due_ranks[i]
    end
  end
  line_up(ready, priority, wake, rest, rest_ranks, now)
end
if may_skip then
  strike_off(skips, meta, passed, skip)
end
if #ids > 0 then
  local granted = { LAST_CLAIM, token .. PADDING }
  for i = 1, #ids do
    granted[2 * i + 1] = ids[i]
    granted[2 * i + 2] = token
  end
  redis.call('HSET', working, unpack(granted))
  redis.call('HSET', meta, 'fence', fence)
end
if more then
  ring(wake)
end
local wait = next_due and math.max(0, next_due - now) or -1
return { 'OK', token, now, more and 1 or 0, wait, ids, records, counts }
