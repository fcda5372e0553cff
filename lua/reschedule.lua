-- reschedule: pauses a schedule, resumes it, moves it to another queue, or removes it
--
-- A move has these steps, each of which anybody may repeat: the schedule is stored in the new
-- queue; both are marked as moving, so neither has instants; the new one takes what the old one
-- had; the old one is removed; the new one is settled.
--
-- KEYS   the naming block
-- ARGV   1 now override · 2 name · 3 edition that the caller has read · 4 'pause', 'remove',
--        'move', 'take', 'settle', or the ms when it is due from now on, 'inf' if never · 5 who
--        pauses it, then a line break and why if that is known; with 'take' the ms since when, who
--        and why, '' if it is not paused · then with 'take': 6 ms when it is due, 'inf' if never ·
--        7 its latest instant, '' if it had none · 8 ms when it was made · the entries of its
--        history…, the latest first
-- REPLY  OK
-- REFUSE STALE

local meta, schedules, code_schedules, schedule = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local ticks = KEYS[5]
local now, name, edition, act, by = now_ms(ARGV[1]), ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local due, last, made = ARGV[6], ARGV[7], ARGV[8]
local FIRST_ENTRY = 9
local wake = string.sub(meta, 1, -5) .. 'wake'
-- The field that an act removes. A resume removes the pause.
local REMOVED = { pause = '', move = '', take = '', settle = 'moving' }

-- Checks.
local known = redis.call('HMGET', schedule, 'edition', 'release')
if known[1] ~= edition then
  return { 'STALE' }
end
redis.call('ZCARD', schedules)
redis.call('ZCARD', code_schedules)
local entries = redis.call('LLEN', ticks)
local is_woken = redis.call('LLEN', wake) > 0
local index = known[2] == '' and schedules or code_schedules
local resumes = not REMOVED[act]

-- Writes.
if act == 'remove' then
  redis.call('ZREM', index, name)
  redis.call('UNLINK', schedule, ticks)
  return { 'OK' }
end
redis.call('HDEL', schedule, REMOVED[act] or 'paused')
redis.call('HSET', schedule, 'edition', whole(edition + 1))
if act == 'pause' then
  redis.call('HSET', schedule, 'paused', whole(now) .. ' ' .. by)
  redis.call('ZADD', index, 'inf', name)
elseif act == 'move' then
  redis.call('HSET', schedule, 'moving', '1')
elseif act == 'take' then
  redis.call('HSET', schedule, 'made', made)
  if by ~= '' then
    redis.call('HSET', schedule, 'paused', by)
  end
  if last ~= '' then
    redis.call('HSET', schedule, 'last', last)
  end
  redis.call('ZADD', index, due, name)
  for place = FIRST_ENTRY, #ARGV do
    redis.call('RPUSH', ticks, ARGV[place])
  end
  redis.call('LTRIM', ticks, whole(entries), '-1')
elseif resumes then
  redis.call('ZADD', index, act, name)
end
if (resumes or act == 'settle') and not is_woken then
  redis.call('RPUSH', wake, SCHEDULES_CHANGED)
end
return { 'OK' }
