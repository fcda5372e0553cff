-- claim: Ready → Working, up to 128; what is due (Delayed, Retry) becomes Ready on the way
--
-- Grants a worker tasks from the line under one token `<claim seq>:<fence>`. Asked again with the
-- same seq it repeats what that claim granted and the worker still holds. Tombstones are passed
-- over; there are none while `tombstones` is zero.
--
-- KEYS   the naming block
-- ARGV   1 now override · 2 worker · 3 claim seq · 4 how many · 5 '1' if the worker holds nothing
--        else and will not until the one task that it asks for has ended; may be left out
-- REPLY  OK, token, now ms, 1 if work is left, ms until the next task is due (-1: none), how many,
--        ids, records, tries (none if none of the queue's tasks has any); all in one list, since
--        each list within a reply costs Redis as much as a command
-- REFUSE LAPSED · STALE · PAUSED

local meta, tasks, ready, priority, priorities = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local delayed, retry, skips, workers = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local working, tries, wake = KEYS[10], KEYS[11], KEYS[12]
local now, worker, seq = now_ms(ARGV[1]), ARGV[2], ARGV[3]
local want, want_text, alone = tonumber(ARGV[4]), ARGV[4], ARGV[5] == '1'
local CLAIM_MAX = 128
-- Beyond 64 bytes Redis turns a small hash into a table; in its compact form each look at 100 tasks
-- would walk all.
local PADDING = '                                                                '

-- Checks.
local expiry = redis.call('ZSCORE', workers, worker)
if not expiry or tonumber(expiry) <= now then
  return { 'LAPSED' }
end
local last = redis.call('HGET', working, LAST_CLAIM)
local last_seq = last and string.sub(last, 1, string.find(last, ':', 1, true) - 1)
-- Numbers of as many digits are in order as texts, too, so the usual case parses nothing.
local is_new = not last_seq or (#last_seq == #seq and last_seq < seq)
  or tonumber(last_seq) < tonumber(seq)
if not is_new and last_seq ~= seq then
  return { 'STALE' }
end
local flags = redis.call('HMGET', meta, 'paused', 'fence')
local used = redis.call('EXISTS', priority, delayed, retry, tries, skips) > 0

-- What is answered for a claim that holds these tasks.
local function answer(token, more, wait, ids, records)
  local count = #ids
  local reply = { 'OK', token, now, more and 1 or 0, wait, count, unpack(ids) }
  local ids_end = #reply
  for i = 1, count do
    reply[ids_end + i] = records[i] or ''
  end
  if used and count > 0 and redis.call('HLEN', tries) > 0 then
    for i, stored in ipairs(redis.call('HMGET', tries, unpack(ids))) do
      reply[ids_end + count + i] = stored or ''
    end
  end
  return reply
end

if not is_new then
  local ids, token = {}, string.match(last, '^%d+:%d+')
  local held = redis.call('HGETALL', working)
  for i = 1, #held, 2 do
    if held[i + 1] == token then
      ids[#ids + 1] = held[i]
    end
  end
  local records = #ids > 0 and redis.call('HMGET', tasks, unpack(ids)) or {}
  return answer(token, true, -1, ids, records)
end
if flags[1] then
  return { 'PAUSED' }
end

-- One more than wanted is looked at, to know whether work is left.
if want > CLAIM_MAX then
  want, want_text = CLAIM_MAX, '128'
end
local line = redis.call('LRANGE', ready, '0', want_text)
local line_length, ids, from_line, more = #line, nil, nil, nil
local ranked, unranked, due_delayed, due_retry, due, due_ranks, next_due, may_skip, skip, passed
local started = 0
if not used then
  ids, from_line = plain_ids(line, want)
  more = line_length > from_line
else
  local next_delayed, next_retry
  due_delayed, next_delayed = due_in(delayed, now)
  due_retry, next_retry = due_in(retry, now)
  next_due = next_delayed and next_retry and math.min(next_delayed, next_retry)
    or next_delayed or next_retry
  due = { unpack(due_delayed) }
  for i = 1, #due_retry do
    due[#due + 1] = due_retry[i]
  end
  due_ranks = priorities_of(priorities, due)
  ranked = redis.call('ZRANGE', priority, '0', want_text, 'WITHSCORES')
  may_skip = redis.call('EXISTS', skips) == 1
  skip = may_skip and line_length > 0 and skips_of(skips, line) or {}
  ids, from_line, unranked, passed = merged_ids(line, ranked, skip, want)
  -- Behind the line, unless tombstones were all of it that was looked at.
  while #ids < want and line_length <= want and started < #due
    and not (due_ranks and due_ranks[started + 1]) do
    started = started + 1
    ids[#ids + 1] = due[started]
  end
  more = line_length > from_line or #ranked > 2 * #unranked or #due > started
    or (next_due and next_due <= now)
end
more = more or line_length > want
local records = #ids > 0 and redis.call('HMGET', tasks, unpack(ids)) or {}
ids, records = with_records(ids, records)
local fence = whole(math.max(tonumber(flags[2] or 0) + 1, now * 1024))
local token = seq .. ':' .. fence
local reply = answer(token, more, next_due and math.max(0, next_due - now) or -1, ids, records)
local is_rung = more and redis.call('LLEN', wake) > 0

-- Writes.
local keeps_line = line_length > want or from_line < line_length
if used then
  if #due_delayed > 0 then
    redis.call('ZREM', delayed, unpack(due_delayed))
  end
  if #due_retry > 0 then
    redis.call('ZREM', retry, unpack(due_retry))
  end
  if started < #due then
    local rest, rest_ranks = { unpack(due, started + 1) }, nil
    rest_ranks = due_ranks and { unpack(due_ranks, started + 1, #due) }
    -- What was claimed leaves its key after this, so neither is emptied and written again.
    line_up(ready, priority, wake, rest, rest_ranks, now)
    keeps_line = true
  end
  if #unranked > 0 then
    redis.call('ZREM', priority, unpack(unranked))
  end
end
if keeps_line then
  redis.call('LTRIM', ready, from_line == want and want_text or whole(from_line), '-1')
elseif from_line > 0 or more then
  redis.call('UNLINK', ready)
end
if may_skip then
  strike_off(skips, meta, passed, skip)
end
if #ids > 0 then
  local granted = { LAST_CLAIM, token .. (alone and ALONE or '') .. PADDING, ids[1], token }
  for i = 2, #ids do
    granted[2 * i + 1] = ids[i]
    granted[2 * i + 2] = token
  end
  redis.call('HSET', working, unpack(granted))
  redis.call('HSET', meta, 'fence', fence)
end
if more and not is_rung then
  -- Looks again, for what joined the line may have rung already.
  ring(wake)
end
return reply
