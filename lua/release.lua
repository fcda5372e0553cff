-- release: Working → Ready | Delayed, up to 128, without spending an attempt
--
-- Gives tasks back, each only if the caller still holds it under its token: to the head of the line
-- (shutdown), or to come back later (a snooze, or a misfit, which is counted). A task that was
-- asked to stop is cancelled instead. One that was started never expires from then on.
--
-- KEYS   the naming block
-- ARGV   those of a report; column: how
--        how: `head:` · `interrupted:`, to the head after it was started · `snooze:<ms>` ·
--        `misfit:<ms>`
-- REPLY  OK, then the position of each task whose lease is another's by now

local meta, tasks, working, ready, priority = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local priorities, delayed, cancelled, tries = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local cancel, waiters, wake = KEYS[10], KEYS[11], KEYS[12]
local now = now_ms(ARGV[1])

-- Checks.
local held, reply, first_id, count = still_held(working)
if #held == 0 then
  return reply
end
local ids, hows = column(first_id, count, held), column(first_id + count, count, held)
local records = redis.call('HMGET', tasks, unpack(ids))
local ranks = priorities_of(priorities, ids)
local counts = redis.call('HMGET', tries, unpack(ids))
local intents = redis.call('HLEN', cancel) > 0 and redis.call('HMGET', cancel, unpack(ids))
local waiting = waiters_of(meta, waiters, ids)
local due_hint = redis.call('HGET', meta, 'due')
redis.call('ZCARD', delayed)
redis.call('ZCARD', cancelled)
redis.call('ZCARD', priority)
redis.call('LLEN', ready)
redis.call('LLEN', wake)
local marks, counted = {}, {}
for i = 1, #ids do
  local how = string.match(hows[i], '^(%a+)')
  local failures, losses, misfits, start_by = tries_of(counts[i])
  -- A record that opens with its stamp is of a task that can expire.
  local can_expire = records[i] and string.sub(records[i], 1, 1) ~= '{'
  if how == 'misfit' then
    counted[i] = tries_text(failures, losses, misfits + 1, start_by)
  elseif how ~= 'head' and can_expire and failures + losses == 0 and start_by ~= '0' then
    counted[i] = tries_text(failures, losses, misfits, '0')
  end
  local biz = intents and intents[i] and biz_key(meta, header_of(records[i]))
  marks[i] = biz and { biz, redis.call('GET', biz) }
end

-- Writes.
redis.call('HDEL', working, unpack(ids))
local back, back_ranks, due_first = {}, ranks and {}, nil
for i = 1, #ids do
  local id = ids[i]
  local how, value = string.match(hows[i], '^(%a+):(.*)$')
  if counted[i] and not (intents and intents[i]) then
    redis.call('HSET', tries, id, counted[i])
  end
  if intents and intents[i] then
    redis.call('HDEL', cancel, id)
    redis.call('ZADD', cancelled, whole(now), id)
    if marks[i] then
      biz_release(marks[i][1], marks[i][2], id)
    end
    notify(meta, waiters, id, waiting and waiting[i], 'cancelled')
  elseif how == 'head' or how == 'interrupted' then
    back[#back + 1] = id
    if back_ranks then
      back_ranks[#back] = ranks[i]
    end
  else
    local due = now + tonumber(value)
    redis.call('ZADD', delayed, whole(due), id)
    due_first = math.min(due_first or due, due)
  end
end
if #back > 0 then
  line_up_again(ready, priority, wake, back, back_ranks, now)
end
if due_first then
  due_at_latest(meta, wake, due_hint, due_first)
end
return reply
