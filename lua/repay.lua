-- repay: gives a permit that `acquire` granted back, or renews its lease
--
-- KEYS   the naming block
-- ARGV   1 now override · 2 gate · 3 name of the permit · 4 lease ms, '' to give it back
-- REPLY  OK, '1' if the permit was still granted

local meta, loans = KEYS[1], KEYS[2]
local now, name, permit, lease_ms = now_ms(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local loan, busy = name .. '\n' .. permit, key_of(meta, 'busy', name)

-- Checks.
local is_granted = tonumber(redis.call('ZSCORE', loans, loan) or 0) > now
redis.call('ZCARD', busy)
local opening = opening_of(meta, name)

-- Writes.
redis.call('ZREM', loans, lease_ms == '' and loan or '')
if lease_ms == '' then
  -- No call may have ended a permit whose lease is over.
  redis.call('ZREM', busy, permit)
  write_open(opening, now)
elseif is_granted then
  redis.call('ZADD', loans, whole(now + lease_ms), loan)
end
return { 'OK', is_granted and '1' or '0' }
