-- reschedule: pauses a schedule, resumes it, or removes it with its history
--
-- KEYS   the naming block
-- ARGV   1 now override · 2 name · 3 edition that the caller has read · 4 'pause', 'remove', or the
--        ms when it is due from now on, 'inf' if never · 5 who pauses it, without a line break
-- REPLY  OK
-- REFUSE STALE

local meta, schedules, code_schedules, schedule = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local ticks = KEYS[5]
local now, name, edition, act, by = now_ms(ARGV[1]), ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local wake = string.sub(meta, 1, -5) .. 'wake'

-- Checks.
local known = redis.call('HMGET', schedule, 'edition', 'release')
if (known[1] or '0') ~= edition then
  return { 'STALE' }
end
redis.call('ZCARD', schedules)
redis.call('ZCARD', code_schedules)
redis.call('LLEN', ticks)
local is_woken = redis.call('LLEN', wake) > 0
local index = known[2] == '' and schedules or code_schedules

-- Writes.
if act == 'remove' then
  redis.call('ZREM', index, name)
  redis.call('UNLINK', schedule, ticks)
  return { 'OK' }
end
redis.call('HDEL', schedule, act == 'pause' and '' or 'paused')
redis.call('HSET', schedule, 'edition', whole(edition + 1))
if act == 'pause' then
  redis.call('HSET', schedule, 'paused', whole(now) .. ' ' .. by)
end
redis.call('ZADD', index, act == 'pause' and 'inf' or act, name)
if act ~= 'pause' and not is_woken then
  redis.call('RPUSH', wake, SCHEDULES_CHANGED)
end
return { 'OK' }
