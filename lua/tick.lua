-- tick: ∅ → Delayed, the task of one instant of a schedule, and the schedule goes on to the next
--
-- The instant that the caller expects decides: of any number of callers, one submits the task, and
-- the others are refused. The task is due at once, or after the jitter; so the next claim moves it
-- to its lane or into the ready list. An instant is noted in the history and submits nothing while
-- the task before it has not ended, if the schedule skips such instants; if another task has the
-- biz id of the task; or if it was missed. A full Redis refuses the whole call.
--
-- KEYS   the naming block; then the key of the biz id, if the task has one
-- ARGV   1 now override · 2 name · 3 edition that the caller has read · 4 the ms when the schedule
--        was due, '' to run it now, out of turn · 5 ms when it is due next, 'inf' if never · 6 the
--        instant of the task in ms · 7 how many instants before it were missed · 8 id, '' if the
--        instants were all missed · 9 record · 10 payload, if it is apart from the record, else ''
--        · 11 ms of the jitter · 12 '1' if it is skipped while the task before has not ended · 13
--        the version of the record · 14 width of its lane, 0 if it has none · 15 '1' if it has
--        limits · 16 '1' if the record must state when it was accepted · 17 priority, '' for none
--        · 18 ms of the biz window, '' without a biz id
-- REPLY  OK, what became of it: `stored`, `overlap`, `missed`, or the owner of the biz id
-- REFUSE STALE · EARLY with the ms until the schedule is due · NEWER with the required number

local meta, tasks, delayed, schedule, ticks = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local schedules, code_schedules = KEYS[6], KEYS[7]
local FIXED_KEYS = 7
local biz_keys = { unpack(KEYS, FIXED_KEYS + 1) }
local now, name, edition, expected = now_ms(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local following, nominal, missed, id = ARGV[5], ARGV[6], ARGV[7], ARGV[8]
local record, blob, jitter_ms, skips = ARGV[9], ARGV[10], tonumber(ARGV[11]), ARGV[12] == '1'
local version, width, is_limited = tonumber(ARGV[13]), tonumber(ARGV[14]), ARGV[15] == '1'
local is_stamped, ranked, window = ARGV[16] == '1', ARGV[17], ARGV[18]
local base = string.sub(meta, 1, -5)
local wake, priorities, blobs = base .. 'wake', base .. 'priorities', base .. 'blobs'
local TICKS_MAX = 100

-- Checks.
local known = redis.call('HMGET', schedule, 'edition', 'release', 'last_id', 'moving')
if known[1] ~= edition or known[4] then
  return { 'STALE' }
end
local is_in_turn = expected ~= ''
local index = known[2] == '' and schedules or code_schedules
local due = redis.call('ZSCORE', index, name)
if is_in_turn and due ~= expected then
  return { 'STALE' }
elseif is_in_turn and due + 0 > now then
  return { 'EARLY', whole(due - now) }
end
local facts = redis.call('HMGET', meta, 'needs', 'due', 'limited', 'widest')
local needs = tonumber(facts[1] or 1)
if needs > NEEDS_KNOWN then
  return { 'NEWER', facts[1] }
end
local what = id == '' and 'missed' or 'stored'
local last_id = known[3]
if what == 'stored' and is_in_turn and skips and last_id
  and redis.call('HEXISTS', tasks, last_id) == 1
  and not redis.call('ZSCORE', base .. 'dead', last_id)
  and not redis.call('ZSCORE', base .. 'cancelled', last_id) then
  what = 'overlap'
end
local owner = what == 'stored' and window ~= ''
  and biz_owner(tasks, redis.call('GET', biz_keys[1]), now)
what = owner or what
local is_there = redis.call('HEXISTS', tasks, id) == 1
local size = redis.call('ZCARD', delayed)
redis.call('LLEN', wake)
redis.call('LLEN', ticks)
if ranked ~= '' then
  redis.call('HLEN', priorities)
end
if blob ~= '' then
  redis.call('HLEN', blobs)
end
local due_ms = now + jitter_ms
local submits = what == 'stored' and not is_there
local entry = nominal .. ' ' .. whole(now) .. ' ' .. missed .. ' '
  .. (is_in_turn and '' or 'now ')
  .. (what == 'stored' and id or owner and '=' .. owner or what)

-- Writes.
if submits then
  redis.call('HSET', tasks, id, (is_stamped and stamp_of(now) or '') .. record)
  if blob ~= '' then
    redis.call('HSET', blobs, id, blob)
  end
  if ranked ~= '' then
    redis.call('HSET', priorities, id, ranked)
  end
  if window ~= '' then
    redis.call('SET', biz_keys[1], biz_mark(id, window == '0' and 0 or now + tonumber(window)))
  end
  zadd_as_table(delayed, size, { whole(due_ms), id })
  due_at_latest(meta, wake, facts[2], due_ms)
  wake_worker(wake)
  if needs < version then
    redis.call('HSET', meta, 'needs', whole(version))
  end
  if is_limited then
    write_limited(meta, { whole(math.max(needs, version)), facts[3] })
  end
  if width > tonumber(facts[4] or 1) then
    redis.call('HSET', meta, 'widest', whole(width))
  end
end
redis.call('LPUSH', ticks, entry)
redis.call('LTRIM', ticks, '0', whole(TICKS_MAX - 1))
if what == 'stored' then
  redis.call('HSET', schedule, 'last_id', id)
end
if is_in_turn then
  redis.call('HSET', schedule, 'last', nominal)
  redis.call('ZADD', index, following, name)
end
return { 'OK', what }
