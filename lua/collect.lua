-- collect: Blocked → Working, up to 128 tasks that run together with one that the worker holds
--
-- The worker holds the task that leads the run. Those that have waited longest join it under a
-- token of their own, which has the number of the claim that granted the leader. If the run takes
-- more of them than one call returns, the leader leads until the next call. Otherwise it leaves its
-- key, and the tasks that are left are due when their own time has passed, or at once if they are
-- enough for a run. None joins in a queue that was paused meanwhile. A repeated call collects
-- others; the worker's next heartbeat shows those that it never heard of, and it gives them back.
--
-- KEYS   the naming block
-- ARGV   1 now override · 2 the task that leads · 3 its token · 4 how many more the run takes
-- REPLY  as of `claim`: OK, token, now ms, 1 if another call must follow, -1, how many, ids,
--        records, tries
-- REFUSE STALE

local meta, tasks, working, tries = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now, leader, token = now_ms(ARGV[1]), ARGV[2], ARGV[3]
local want = tonumber(ARGV[4])
local COLLECT_MAX = 128

-- Checks.
if redis.call('HGET', working, leader) ~= token then
  return { 'STALE' }
end
local base = string.sub(meta, 1, -5)
local header = header_of(redis.call('HGET', tasks, leader))
local run, was_leader = gathered_at(base, header, leader, redis.call('HGET', tries, leader))
if not run then
  return granted(token, now, false, -1, {}, {}, nil)
end
local gathers = base .. 'gathers'
local facts = redis.call('HMGET', meta, 'fence', 'due', 'paused')
want = facts[3] and 0 or want
local waiting = redis.call('ZCOUNT', run.key, '0', '+inf')
local size = redis.call('ZCARD', run.key)
local taken = {}
if want > 0 and waiting > 0 then
  taken = redis.call('ZRANGEBYSCORE', run.key, '0', '+inf', 'LIMIT', '0',
    whole(math.min(want, COLLECT_MAX)))
end
local left = waiting - #taken
local goes_on = left > 0 and want > #taken
local is_empty = size == #taken + (was_leader and not goes_on and 1 or 0)
local due = nil
if goes_on then
  due = now + LEAD_MS
elseif left >= run.max then
  due = now
elseif left > 0 then
  local first = redis.call('ZRANGEBYSCORE', run.key, '0', '+inf', 'WITHSCORES', 'LIMIT',
    whole(#taken), '1')
  due = math.max(now, tonumber(first[2]) + run.wait)
end
redis.call('ZCARD', gathers)
redis.call('LLEN', base .. 'wake')
local ids, records = with_records(tasks, taken)
local fence = whole(math.max(tonumber(facts[1] or 0) + 1, now * 1024))
local own = string.match(token, '^%d+') .. ':' .. fence
local reply = granted(own, now, goes_on, -1, ids, records, tries)

-- Writes.
redis.call('ZREM', run.key, goes_on and '' or leader, unpack(taken))
if is_empty then
  redis.call('ZREM', gathers, run.name)
end
if #ids > 0 then
  local held = {}
  for i, id in ipairs(ids) do
    held[2 * i - 1], held[2 * i] = id, own
  end
  redis.call('HSET', working, unpack(held))
  redis.call('HSET', meta, 'fence', fence)
end
if #taken > 0 then
  redis.call('HINCRBY', meta, 'blocked', -#taken)
end
if due then
  redis.call('ZADD', gathers, whole(due), run.name)
  due_at_latest(meta, base .. 'wake', facts[2], due)
end
return reply
