-- operation_carry: takes or renews the lease of who carries an operation on, and stores how far it
-- has come
--
-- A new carrier gets a larger fence. What an earlier one stores later is refused. The state changes
-- only if it is still the one that the carrier knows, because somebody may have cancelled the
-- operation; what was done is stored nevertheless.
--
-- KEYS   the naming block
-- ARGV   1 now override · 2 id · 3 fence, '' to take the lease · 4 lease ms, '0' to give it back ·
--        5 state that the carrier knows · 6 its next state, or the same · 7 how many tasks match,
--        '' for no change · 8 how far it has come, as JSON, '' for no change
-- REPLY  OK, now · fence · state · about · ms when it was added · how many match · why · how far it
--        has come · ms of the last change
-- REFUSE ABSENT · EARLY with the ms until the lease of another is over · STALE for an earlier
--        carrier · WRONG_STATE with the state of one that is not to be carried on

local carried, operation = KEYS[1], KEYS[2]
local now, id, fence, lease_ms = now_ms(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4])
local from, to, matched, progress = ARGV[5], ARGV[6], ARGV[7], ARGV[8]
local RESTS = { counted = true, done = true, cancelled = true, failed = true }
-- A lease that is longer was given before the clock was set back.
local LEASE_MAX = 600000

-- Checks.
local known = redis.call('HMGET', operation, 'state', 'fence', 'about', 'added', 'matched', 'why',
  'progress', 'changed')
local state, last = known[1], tonumber(known[2] or 0)
if not state then
  return { 'ABSENT' }
end
local free_at = redis.call('ZSCORE', carried, id)
if fence == '' then
  if not free_at then
    return { 'WRONG_STATE', state }
  end
  local left = tonumber(free_at) - now
  if left > 0 and left <= LEASE_MAX then
    return { 'EARLY', whole(left) }
  end
  fence = whole(math.max(last + 1, now * 1024))
elseif tonumber(fence) ~= last or not free_at then
  return { 'STALE' }
end
state = state == from and to or state

-- Writes.
redis.call('HDEL', operation, '')
redis.call('HSET', operation, 'state', state, 'fence', fence)
if matched ~= '' then
  redis.call('HSET', operation, 'matched', matched)
end
if progress ~= '' then
  redis.call('HSET', operation, 'progress', progress, 'changed', whole(now))
end
if lease_ms == 0 and RESTS[state] then
  redis.call('ZREM', carried, id)
else
  redis.call('ZADD', carried, whole(now + lease_ms), id)
end
return { 'OK', whole(now), fence, state, known[3], known[4], matched ~= '' and matched or known[5],
  known[6] or '', progress ~= '' and progress or known[7] or '',
  progress ~= '' and whole(now) or known[8] }
