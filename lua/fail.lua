-- fail: Working → Retry | Dead | Cancelled, up to 128
--
-- Ends attempts that did not succeed, each only if the caller still holds it under its token. The
-- verdict is the worker's, who knows the policy; but a task that was asked to stop is not retried.
--
-- KEYS   the naming block
-- ARGV   those of a report; columns: verdict; error as JSON or ''
--        verdict: `retry:<ms>` · `dead:` · `cancelled:`
-- REPLY  OK, then the position of each report whose lease is another's by now

local meta, tasks, working, retry, dead, cancelled = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5],
  KEYS[6]
local tries, errors, cancel, waiters, wake = KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11]
local now = now_ms(ARGV[1])

-- Checks.
local held, reply, first_id, count = still_held(working)
if #held == 0 then
  return reply
end
local ids = column(first_id, count, held)
local verdicts = column(first_id + count, count, held)
local entries = column(first_id + 2 * count, count, held)
local counts = redis.call('HMGET', tries, unpack(ids))
local histories = redis.call('HMGET', errors, unpack(ids))
local intents = redis.call('HLEN', cancel) > 0 and redis.call('HMGET', cancel, unpack(ids))
local records = redis.call('HMGET', tasks, unpack(ids))
local waiting = waiters_of(meta, waiters, ids)
local due_hint = redis.call('HGET', meta, 'due')
redis.call('ZCARD', retry)
redis.call('ZCARD', dead)
redis.call('ZCARD', cancelled)
redis.call('LLEN', wake)
local marks = {}
for i = 1, #ids do
  if intents and intents[i] and string.sub(verdicts[i], 1, 5) == 'retry' then
    verdicts[i] = 'cancelled:'
  end
  local biz = verdicts[i] == 'cancelled:' and biz_key(meta, header_of(records[i]))
  marks[i] = biz and { biz, redis.call('GET', biz) }
end

-- Writes.
redis.call('HDEL', working, unpack(ids))
local due_first = nil
for i = 1, #ids do
  local id = ids[i]
  local verdict, wait = string.match(verdicts[i], '^(%a+):(%d*)$')
  local failures, losses, misfits = tries_of(counts[i])
  redis.call('HSET', tries, id, tries_text(failures + 1, losses, misfits))
  if entries[i] ~= '' then
    redis.call('HSET', errors, id, errors_with(histories[i], now, entries[i]))
  end
  if verdict == 'retry' then
    local due = now + tonumber(wait)
    redis.call('ZADD', retry, whole(due), id)
    due_first = math.min(due_first or due, due)
  else
    if intents and intents[i] then
      redis.call('HDEL', cancel, id)
    end
    redis.call('ZADD', verdict == 'dead' and dead or cancelled, whole(now), id)
    if marks[i] then
      biz_release(marks[i][1], marks[i][2], id)
    end
    notify(meta, waiters, id, waiting and waiting[i], verdict)
  end
end
if due_first then
  due_at_latest(meta, wake, due_hint, due_first)
end
return reply
