-- relay: removes effects from an outbox that were applied at their target
--
-- KEYS   the naming block; the last key has the name of the target
-- ARGV   1 the target · 2 the last number that was applied
-- REPLY  OK, how many effects are left

local outboxes, outbox = KEYS[1], KEYS[2]
local target, last = ARGV[1], ARGV[2]

-- Checks.
redis.call('ZCARD', outboxes)
local left = redis.call('ZCOUNT', outbox, '(' .. last, '+inf')

-- Writes.
redis.call('ZREMRANGEBYSCORE', outbox, '-inf', last)
if left == 0 then
  redis.call('ZREM', outboxes, target)
end
return { 'OK', whole(left) }
