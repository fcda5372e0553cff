-- stats: the statistics of a queue, by minutes, hours or days
--
-- KEYS   the naming block
-- ARGV   1 now override · 2 `minutes`, `hours` or `days` · 3 how many finished rows
-- REPLY  OK, now, the open rows of the minute, the hour and the day, '' if there is none; then the
--        latest finished rows, the latest last

local tally, minutes, hours, days = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now, unit, limit = now_ms(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local ROWS_MAX = 128

-- Checks.
local open = redis.call('HMGET', tally, 'minute', 'hour', 'day')
local key = unit == 'days' and days or unit == 'hours' and hours or minutes
local rows = redis.call('LRANGE', key, whole(-math.min(limit, ROWS_MAX)), '-1')
return { 'OK', whole(now), open[1] or '', open[2] or '', open[3] or '', unpack(rows) }
