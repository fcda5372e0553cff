-- relay: removes effects from an outbox that were applied at their target
--
-- The effects of a queue on itself are removed only as far as the queue knows that it has applied
-- them: after a failover it may have lost that.
--
-- KEYS   the naming block; the last key has the name of the target
-- ARGV   1 the target · 2 the last number that was applied · 3 `1` if the target is this queue
-- REPLY  OK, how many effects are left

local outboxes, applied, outbox = KEYS[1], KEYS[2], KEYS[3]
local target, last, is_own = ARGV[1], ARGV[2], ARGV[3] == '1'

-- Checks.
local known = tonumber(redis.call('HGET', applied, target) or 0)
if is_own then
  last = whole(math.min(tonumber(last), known))
end
redis.call('ZCARD', outboxes)
local left = redis.call('ZCOUNT', outbox, '(' .. last, '+inf')

-- Writes.
redis.call('ZREMRANGEBYSCORE', outbox, '-inf', last)
if left == 0 then
  redis.call('ZREM', outboxes, target)
end
return { 'OK', whole(left) }
