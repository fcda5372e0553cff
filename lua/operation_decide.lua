-- operation_decide: an operator confirms an operation whose tasks are counted, or cancels one
--
-- The carrier of a cancelled operation stores what was done last, lets tasks that are requeued ask
-- for what they wait for, and stops. So one that was confirmed is carried on until then.
--
-- KEYS   the naming block
-- ARGV   1 now override · 2 id · 3 `confirm` or `cancel` · 4 how many tasks match, for a confirm ·
--        5 why, '' to leave it as it was counted
-- REPLY  OK
-- REFUSE ABSENT · STALE with the number that match, if it is another · WRONG_STATE with the state ·
--        FORGOTTEN if it was counted more than a day ago, or its counted tasks are not stored

local carried, operation, counted = KEYS[1], KEYS[2], KEYS[3]
local now, id, decision, expected, why = now_ms(ARGV[1]), ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local CONFIRMED_WITHIN_MS = 86400000
local IS_OVER = { done = true, failed = true, cancelled = true }

-- Checks.
local known = redis.call('HMGET', operation, 'state', 'matched', 'confirmed', 'changed')
local state = known[1]
if not state then
  return { 'ABSENT' }
end
redis.call('ZCARD', carried)
local has_counted = redis.call('HLEN', counted) > 0
if decision == 'confirm' then
  if known[3] == expected and state ~= 'cancelled' then
    -- A repeat.
    return { 'OK' }
  elseif state ~= 'counted' then
    return { 'WRONG_STATE', state }
  elseif known[2] ~= expected then
    return { 'STALE', known[2] }
  elseif now - tonumber(known[4]) > CONFIRMED_WITHIN_MS
    or not has_counted and tonumber(expected) > 0 then
    return { 'FORGOTTEN' }
  end
elseif IS_OVER[state] then
  return state == 'cancelled' and { 'OK' } or { 'WRONG_STATE', state }
end

-- Writes.
redis.call('ZREM', carried, '')
if decision == 'confirm' then
  redis.call('HSET', operation, 'state', 'running', 'confirmed', expected, 'changed', whole(now))
  if why ~= '' then
    redis.call('HSET', operation, 'why', why)
  end
  redis.call('PERSIST', counted)
  redis.call('ZADD', carried, whole(now), id)
else
  if state == 'counted' then
    redis.call('UNLINK', counted)
  end
  redis.call('HSET', operation, 'state', 'cancelled', 'changed', whole(now))
end
return { 'OK' }
