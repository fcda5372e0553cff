-- audit: adds a line of an act of an operator
--
-- It removes lines that are too many or too old. An operator acts because something is wrong, so a
-- full store takes the line, too. A repeat changes nothing.
--
-- KEYS   the naming block
-- ARGV   1 ms of the act · 2 line · 3 how many lines to keep · 4 the ms before which none is kept
-- REPLY  OK

local audit = KEYS[1]
local at, line, most, oldest = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]

-- Checks.
local others = redis.call('ZCARD', audit)

-- Writes.
redis.call('ZREM', audit, '')
redis.call('ZADD', audit, at, line)
if others >= most then
  redis.call('ZREMRANGEBYRANK', audit, '0', '-' .. (most + 1))
end
redis.call('ZREMRANGEBYSCORE', audit, '-inf', '(' .. oldest)
return 'OK'
