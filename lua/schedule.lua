-- schedule: stores a schedule, or changes it
--
-- The caller has read the schedule and computed when it is due. The edition shows whether another
-- call has changed it since then. A new one is marked as moving: it has no instants until the
-- caller has seen that no other queue has one of this name. A schedule that is paused stays paused.
-- The wakeup is marked, so that the worker that receives it looks when the schedule is due.
--
-- KEYS   the naming block
-- ARGV   1 now override · 2 name · 3 edition that the caller has read, 0 if there is none · 4 the
--        release of the program whose code has it; '' if it was made at run time · 5 ms when it is
--        due, 'inf' if never · 6 when it is due, as JSON · 7 record · 8 payload, if that is apart
--        from the record, else '' · 9 its number: of several queues that have a schedule of this
--        name, the highest number keeps it · 10 ms when the program of that release has started, 0
--        if it was made at run time
-- REPLY  OK
-- REFUSE STALE

local meta, schedules, code_schedules, schedule = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now, name, edition, release = now_ms(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local due, timing, record, blob = ARGV[5], ARGV[6], ARGV[7], ARGV[8]
local number, started = ARGV[9], ARGV[10]
local wake = string.sub(meta, 1, -5) .. 'wake'

-- Checks.
local known = redis.call('HMGET', schedule, 'edition', 'paused', 'made')
if (known[1] or '0') ~= edition then
  return { 'STALE' }
end
redis.call('ZCARD', schedules)
redis.call('ZCARD', code_schedules)
local is_woken = redis.call('LLEN', wake) > 0

-- Writes.
redis.call('HSET', schedule, 'edition', whole(edition + 1), 'release', release, 'timing', timing,
  'record', record, 'blob', blob, 'made', known[3] or whole(now), 'number', number,
  'started', started)
if not known[1] then
  redis.call('HSET', schedule, 'moving', '1')
end
redis.call('ZREM', release == '' and code_schedules or schedules, name)
redis.call('ZADD', release == '' and schedules or code_schedules, known[2] and 'inf' or due, name)
if not is_woken then
  redis.call('RPUSH', wake, SCHEDULES_CHANGED)
end
return { 'OK' }
