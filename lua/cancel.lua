-- cancel: Delayed | Ready | Retry → Cancelled; a Working task is asked to stop
--
-- Final at once for a task that waits. Its entry in the line stays as a tombstone, since removing
-- it from the middle of a long list would take tens of ms, and is counted. The worker of a running
-- task hears of it through its doorbell, which names the attempt by its
-- token, or with its next heartbeat.
--
-- KEYS   the naming block
-- ARGV   1 now override · 2 id
-- REPLY  OK, `cancelled` | `requested`
-- REFUSE NEWER with what is needed · TERMINAL with the state

local meta, tasks, priority, delayed, retry, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5],
  KEYS[6]
local cancelled, workers, cancel, success = KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local waiters, skips = KEYS[11], KEYS[12]
local now, id = now_ms(ARGV[1]), ARGV[2]
local queue = { meta = meta, cancelled = cancelled, cancel = cancel, waiters = waiters }
local STOP_BELL_TTL_MS = 60000

-- Checks.
local needs = redis.call('HGET', meta, 'needs')
if needs and tonumber(needs) > NEEDS_KNOWN then
  return { 'NEWER', needs }
end
local state, holder = find({ meta = meta, tasks = tasks, delayed = delayed, retry = retry,
  dead = dead, cancelled = cancelled, workers = workers, success = success }, id)
if state == 'cancelled' then
  return { 'OK', 'cancelled' }
elseif state == 'success' or state == 'dead' or state == 'forgotten' then
  return { 'TERMINAL', state }
end
local endings = endings_of(queue, { id })
note_cancelled(queue, endings, 1, id, header_of(redis.call('HGET', tasks, id)))
local ranked = redis.call('ZSCORE', priority, id)
local stop_bell = derive(meta, 'wake', holder)
local token = state == 'working' and redis.call('HGET', derive(meta, 'working', holder), id)
redis.call('ZCARD', retry)
redis.call('HGET', meta, 'tombstones')
redis.call('HLEN', skips)
redis.call('LLEN', stop_bell)

-- Writes.
redis.call('HDEL', cancel, '')
if state == 'working' then
  redis.call('HSET', cancel, id, whole(now))
  redis.call('RPUSH', stop_bell, id .. ' ' .. token)
  redis.call('PEXPIRE', stop_bell, STOP_BELL_TTL_MS)
  return { 'OK', 'requested' }
end
redis.call('ZREM', delayed, id)
redis.call('ZREM', retry, id)
redis.call('ZREM', priority, id)
if state == 'ready' and not ranked then
  redis.call('HINCRBY', skips, id, 1)
  redis.call('HINCRBY', meta, 'tombstones', 1)
end
write_ends(queue, endings, now)
return { 'OK', 'cancelled' }
