-- operation_carry: takes or renews the lease of who carries an operation on, and stores how far it
-- has come
--
-- A new carrier gets a larger fence. What an earlier one stores later is refused. The state changes
-- only if it is still the one that the carrier knows, because somebody may have cancelled the
-- operation; what was done is stored nevertheless. The counted tasks leave as they are reached. All
-- leave when the carrier of an operation that is over gives the lease back, and of one that is not
-- confirmed once that is too late. Before that, a carrier of a requeue that was cancelled or has
-- failed lets the tasks that are back ask. If it is killed, the next one does.
--
-- KEYS   the naming block
-- ARGV   1 now override · 2 id · 3 fence, '' to take the lease · 4 lease ms, '0' to give it back:
--        of an operation that rests in the state that the carrier names, for the last time ·
--        5 state that the carrier knows · 6 its next state, or the same · 7 how many tasks match,
--        '' for no change · 8 how far it has come, as JSON, '' for no change · 9 number of the
--        counted tasks that it has reached, '' for none · counted tasks, each a number and some
--        tasks…
-- REPLY  OK, now · fence · state · about · ms when it was added · how many match · why · how far it
--        has come · ms of the last change
-- REFUSE ABSENT · EARLY with the ms until the lease of another is over · STALE for an earlier
--        carrier · WRONG_STATE with the state of one that is not to be carried on

local carried, operation, counted = KEYS[1], KEYS[2], KEYS[3]
local now, id, fence, lease_ms = now_ms(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4])
local from, to, matched, progress = ARGV[5], ARGV[6], ARGV[7], ARGV[8]
local reached, found = ARGV[9], { select(10, unpack(ARGV)) }
local RESTS = { counted = true, done = true, cancelled = true, failed = true }
-- A lease that is longer was given before the clock was set back.
local LEASE_MAX = 600000
-- An hour longer than an operation can be confirmed.
local COUNTED_KEPT_MS = '90000000'

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
-- A carrier that leaves may not know that somebody has cancelled the operation.
local is_last = lease_ms == 0 and RESTS[state] and state == to
redis.call('HLEN', counted)

-- Writes.
redis.call('HDEL', operation, '')
redis.call('HSET', operation, 'state', state, 'fence', fence)
if matched ~= '' then
  redis.call('HSET', operation, 'matched', matched)
end
if progress ~= '' then
  redis.call('HSET', operation, 'progress', progress, 'changed', whole(now))
end
if state == 'counting' or state == 'counted' then
  if #found > 0 then
    redis.call('HSET', counted, unpack(found))
  end
  redis.call('PEXPIRE', counted, COUNTED_KEPT_MS)
elseif is_last then
  redis.call('UNLINK', counted)
elseif reached ~= '' then
  redis.call('HDEL', counted, reached)
end
if is_last then
  redis.call('ZREM', carried, id)
else
  redis.call('ZADD', carried, whole(now + lease_ms), id)
end
return { 'OK', whole(now), fence, state, known[3], known[4], matched ~= '' and matched or known[5],
  known[6] or '', progress ~= '' and progress or known[7] or '',
  progress ~= '' and whole(now) or known[8] }
