-- pause: pauses or resumes a queue, or one gate of it; no task of a paused queue is claimed, and
-- none that has to pass a paused gate. Resuming also ends the pause of a task's retry.
--
-- KEYS   the naming block
-- ARGV   1 now override · 2 '1' to pause, '0' to resume · 3 gate, '' for the queue · 4 who pauses
--        it, without a line break · 5 why
-- REPLY  OK, '1' if the queue was used before: a task was submitted to it or a worker served it

local meta, tasks, wake, shut, paused = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local now, is_pause, gate = now_ms(ARGV[1]), ARGV[2] == '1', ARGV[3]
local by, why = ARGV[4], ARGV[5]

-- Checks.
local is_used = redis.call('HLEN', tasks) > 0
  or redis.call('HLEN', meta) > redis.call('HEXISTS', meta, 'paused')
redis.call('HLEN', meta)
redis.call('LLEN', wake)
redis.call('ZCARD', shut)
local since = redis.call('HGET', paused, gate)
local ends_shut = not is_pause and gate == '' and redis.call('ZSCORE', shut, gate)
local opening = (gate ~= '' or ends_shut) and opening_of(meta, gate)

-- Writes.
redis.call('HDEL', paused, is_pause and '-' or gate)
if is_pause then
  -- A second pause keeps the time of the first.
  since = since and string.match(since, '^%d+') or whole(now)
  redis.call('HSET', paused, gate, since .. ' ' .. by .. '\n' .. why)
end
if opening and is_pause then
  redis.call('ZADD', shut, 'inf', gate)
  write_limited(meta, opening.limited)
elseif opening then
  redis.call('ZREM', shut, gate)
  write_open(opening, now)
elseif is_pause then
  redis.call('HSET', meta, 'paused', since)
end
if gate == '' and not is_pause then
  redis.call('HDEL', meta, 'paused')
  if is_used then
    -- A queue that was never used is never retired, so it gets no key.
    wake_worker(wake)
  end
end
return { 'OK', is_used and '1' or '0' }
