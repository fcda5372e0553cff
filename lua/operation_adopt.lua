-- operation_adopt: a carrier of an operation goes on in a queue, where an earlier one may have
-- changed tasks that are not counted yet
--
-- From now on, the calls of earlier carriers are refused in this queue.
--
-- KEYS   the naming block
-- ARGV   1 fence · 2 number of the batch
-- REPLY  OK, how many tasks were changed in that batch
-- REFUSE STALE if a later carrier is here

local operated = KEYS[1]
local fence, number = ARGV[1], ARGV[2]
local BATCH_KEPT_MS = '604800000'

-- Checks.
local known = redis.call('HMGET', operated, 'fence', 'number', 'done')
if tonumber(known[1] or 0) > tonumber(fence) then
  return { 'STALE' }
end
local done = known[2] == number and known[3] or '0'

-- Writes.
redis.call('HDEL', operated, '')
redis.call('HSET', operated, 'fence', fence, 'number', number, 'done', done)
redis.call('PEXPIRE', operated, BATCH_KEPT_MS)
return { 'OK', done }
