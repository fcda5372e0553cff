-- stats: the statistics of a queue, by minutes, hours or days
--
-- KEYS   the naming block
-- ARGV   1 now override · 2 `minutes`, `hours` or `days` · 3 how many of the latest finished rows
--        to leave out · 4 how many to read
-- REPLY  OK, now, the open rows of the minute, the hour and the day, '' if there is none; then the
--        finished rows, the latest last

local tally, minutes, hours, days = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now, unit, skip, limit = now_ms(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local ROWS_MAX = 128

-- Checks.
local open = redis.call('HMGET', tally, 'minute', 'hour', 'day')
local key = unit == 'days' and days or unit == 'hours' and hours or minutes
local last = -1 - skip
local rows = redis.call('LRANGE', key, whole(last - math.min(limit, ROWS_MAX) + 1), whole(last))
return { 'OK', whole(now), open[1] or '', open[2] or '', open[3] or '', unpack(rows) }
