-- tally: adds what a worker has counted of the tasks of a queue to the queue's statistics
--
-- The rows of the present minute, hour and day are open. The call that finds the minute over adds
-- that row to the finished minutes and to the open hour; so it is with hours and days. If the clock
-- was set back, a second row of the same time begins, and readers add both. A worker numbers its
-- calls, so that a repeat counts nothing. A full store refuses the call, and the worker adds the
-- counts later.
--
-- KEYS   the naming block
-- ARGV   1 now override · 2 number of the call, above that of the worker's last one · then a line
--        of a row for each task
-- REPLY  OK
-- REFUSE LAPSED

local worker_info, tally, minutes, hours, days = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local now, number, first_line = now_ms(ARGV[1]), tonumber(ARGV[2]), 3
local LINES_MAX, MINUTE_MS, HOUR_MINUTES, DAY_HOURS = 64, 60000, 60, 24
local KEPT = { minute = '-120', hour = '-336', day = '-180' }
-- The statistics of a queue that an older program has retired go after this time.
local EXPIRE_MS = '15638400000'

-- Checks.
local known = redis.call('HLEN', worker_info) > 0
if not known then
  return { 'LAPSED' }
end
if tonumber(redis.call('HGET', worker_info, 'tallied') or 0) >= number then
  return 'OK'
end
local minute_number = math.floor(now / MINUTE_MS)
local minute, hour, day = read_row(redis.call('HGET', tally, 'minute')), nil, nil
local closed = {}
if minute and minute.number ~= minute_number then
  local finished, finished_day
  hour = read_row(redis.call('HGET', tally, 'hour'))
  day = read_row(redis.call('HGET', tally, 'day'))
  closed[1] = { key = minutes, row = minute, kept = KEPT.minute }
  hour, finished = fold_row(hour, minute, HOUR_MINUTES, 2)
  minute = nil
  if finished then
    closed[#closed + 1] = { key = hours, row = finished, kept = KEPT.hour }
    day, finished_day = fold_row(day, finished, DAY_HOURS, 1)
  end
  if finished_day then
    closed[#closed + 1] = { key = days, row = finished_day, kept = KEPT.day }
  end
end
minute = minute or { number = minute_number, names = {}, lines = {} }
for i = first_line, math.min(#ARGV, first_line + LINES_MAX - 1) do
  add_line(minute, ARGV[i], 1)
end
for _, key in ipairs({ minutes, hours, days }) do
  redis.call('LLEN', key)
end

-- Writes.
redis.call('HSET', worker_info, 'tallied', whole(number))
redis.call('HSET', tally, 'minute', row_text(minute))
if hour then
  redis.call('HSET', tally, 'hour', row_text(hour))
end
if day then
  redis.call('HSET', tally, 'day', row_text(day))
end
redis.call('PEXPIRE', tally, EXPIRE_MS)
for _, change in ipairs(closed) do
  redis.call('RPUSH', change.key, row_text(change.row))
  redis.call('LTRIM', change.key, change.kept, '-1')
  redis.call('PEXPIRE', change.key, EXPIRE_MS)
end
return 'OK'
