-- attend: says that a process is there, and what it does; reads what it is asked to do
--
-- KEYS   the naming block
-- ARGV   1 now override · 2 process · 3 ms until it counts as gone, '' if it leaves · 4 description
--        as JSON · 5 what it does now, as JSON
-- REPLY  OK, the number of the last wish, 0 if there is none, and the wish

local fleet, process = KEYS[1], KEYS[2]
local now, id, gone_ms, description, doing = now_ms(ARGV[1]), ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local GONE_MAX = 64

-- Checks.
local wish = redis.call('HMGET', process, 'wishes', 'wish')
local longest = redis.call('ZRANGE', fleet, '-1', '-1', 'WITHSCORES')
local gone = redis.call('ZRANGEBYSCORE', fleet, '-inf', '(' .. whole(now), 'LIMIT', 0, GONE_MAX)

-- Writes.
redis.call('ZREM', fleet, '')
if gone_ms == '' then
  redis.call('UNLINK', process)
  redis.call('ZREM', fleet, id)
  return { 'OK', '0', '' }
end
redis.call('HSET', process, 'description', description, 'doing', doing, 'seen', whole(now))
redis.call('PEXPIRE', process, gone_ms)
redis.call('ZADD', fleet, whole(now + gone_ms), id)
-- Idle processes are listed for longer than others.
local listed_until = math.max(tonumber(longest[2] or 0), now + gone_ms)
redis.call('PEXPIRE', fleet, whole(listed_until - now))
for _, name in ipairs(gone) do
  if name ~= id then
    redis.call('ZREM', fleet, name)
    redis.call('UNLINK', string.sub(fleet, 1, -6) .. 'process:' .. name)
  end
end
return { 'OK', wish[1] or '0', wish[2] or '' }
