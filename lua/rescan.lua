-- rescan: an operator asks the holders of a source's slices to scan at once
--
-- A slow source is no longer slow.
--
-- KEYS   the naming block
-- ARGV   1 now override
-- REPLY  OK, now ms
-- REFUSE ABSENT if no worker has ever held a slice of the source

local meta, control = KEYS[1], KEYS[2]
local now = now_ms(ARGV[1])

-- Checks.
if redis.call('HEXISTS', meta, 'generation') == 0 then
  return { 'ABSENT' }
end
-- Two requests within a millisecond are two requests.
local asked = math.max(now, tonumber(redis.call('HGET', control, 'scan_at') or 0) + 1)

-- Writes.
redis.call('HDEL', control, '')
redis.call('HSET', control, 'scan_at', whole(asked), 'ok', '0', 'failed', '0', 'slow_since', '0')
return { 'OK', whole(now) }
