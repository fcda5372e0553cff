-- claim: Ready → Working, up to 128; tasks that are due (Delayed, Retry) become Ready first, or
-- Blocked if their lanes have no permit for them
--
-- The script grants a worker tasks from the ready list under one token `<claim seq>:<fence>`. A
-- repeat with the same seq returns the tasks of that claim that the worker still holds. Tombstones
-- are skipped; there are none while `tombstones` is zero. A worker with a long lease gets a usual
-- lease when it is granted a task. Every claim, except one for a task that runs alone, removes the
-- mark of a task that runs alone, even if it grants nothing.
--
-- KEYS   the naming block; rarely used keys are derived, because each key that is passed costs
--        Redis about as much as a field of a hash
-- ARGV   1 now override · 2 worker · 3 claim seq · 4 how many · 5 '1' if the worker holds nothing
--        else and will not until the one task that it asks for has ended; optional
-- REPLY  OK, token, now ms, 1 if work is left, ms until the next task is due (-1: none, or work is
--        left; `<ms>/<workers>` if another worker waits for it), how many, ids, records, tries
--        (none if none of the queue's tasks has any); all in one list, because each list within a
--        reply costs Redis as much as a command
-- REFUSE LAPSED · STALE · NEWER · PAUSED

-- A read of a local name costs Redis a third of a read of a global one.
local KEYS, ARGV, call = KEYS, ARGV, redis.call
local meta, tasks, ready, priority, workers = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local working, wake, tries = KEYS[6], KEYS[7], KEYS[8]
local now, worker, seq = now_ms(ARGV[1]), ARGV[2], ARGV[3]
local want_text, alone = ARGV[4], ARGV[5] == '1'
-- Arithmetic with a text costs Redis half of `tonumber`.
local want = want_text + 0
local CLAIM_MAX = 128
-- The byte of `:`.
local COLON = 58
-- The lengths of an entry that is a task's id, and of one with a stamp, as in `ready_entry`.
local ID_LENGTH, STAMPED_LENGTH = 22, 31
-- With one more entry, a key with permits becomes a table, as in `gate`.
local SMALL = 15
-- The lease of a worker that has not registered one.
local LEASE_MS = 15000
-- Beyond 64 bytes Redis turns a small hash into a table. In the compact form each lookup among 100
-- tasks would scan all of them.
local PADDING = '                                                                '

-- Checks.
local expiry = call('ZSCORE', workers, worker)
expiry = expiry and expiry + 0
if not expiry or expiry <= now then
  return { 'LAPSED' }
end
local last = call('HGET', working, LAST_CLAIM)
-- Numbers with the same count of digits sort as text, so the usual case parses nothing.
local is_new = not last or string.byte(last, #seq + 1) == COLON and last < seq
if not is_new then
  local last_seq = string.sub(last, 1, string.find(last, ':', 1, true) - 1)
  if last_seq == seq then
    local _, repeated_claim = rare()()
    return repeated_claim(working, tasks, tries, last, now)
  elseif tonumber(last_seq) > tonumber(seq) then
    return { 'STALE' }
  end
end
if want > CLAIM_MAX then
  want, want_text = CLAIM_MAX, '128'
end
-- This reads one entry more than wanted, to know whether work is left. Then no worker needs to wait
-- for a due time.
local entries = call('LRANGE', ready, '0', want_text)
local flags = #entries > want
  and call('HMGET', meta, 'paused', 'fence', 'due', 'tombstones', 'needs')
  or call('HMGET', meta, 'paused', 'fence', 'due', 'tombstones', 'needs', 'timer')
local needs = flags[5]
if needs and tonumber(needs) > NEEDS_KNOWN then
  return { 'NEWER', needs }
elseif flags[1] then
  return { 'PAUSED' }
end
local due_at, has_tombstones = flags[3] and flags[3] + 0, flags[4] and flags[4] ~= '0'
local is_due = due_at and due_at <= now
local version = needs and tonumber(needs) or 1
local is_limited = version >= NEEDS_OF_LIMITS and call('HGET', meta, 'limited')
local is_usual, is_woken = not is_due and not has_tombstones and not is_limited, nil
if is_usual and #entries <= want then
  is_usual = call('EXISTS', priority) == 0
elseif is_usual then
  -- This counts the first key twice, so the sum shows which of the two exist.
  local there = call('EXISTS', priority, priority, wake)
  is_usual = there < 2
  if is_usual then
    is_woken = there == 1
  end
end
-- The usual case in a queue with limits: no task is ranked or waits for a gate, nothing is lent.
-- In most such queues nothing is set or shut either, so only records have limits.
local base = is_limited and string.sub(meta, 1, -5)
local is_calm, is_bare = is_limited and not is_due and not has_tombstones, false
if is_calm then
  local waits, loans = base .. 'waits', base .. 'loans'
  is_bare = call('EXISTS', priority, waits, loans, base .. 'limits', base .. 'shut') == 0
  is_calm = is_bare or call('EXISTS', priority, waits, loans) == 0
end
-- A claim of one task needs no lists and no functions.
local one, record, tries_of_one = (is_usual or is_bare) and want == 1 and entries[1], nil, nil
if one then
  if #one == STAMPED_LENGTH then
    one = string.sub(one, 10)
    tries_of_one = call('HGET', tries, one) or nil
  end
  record = #one == ID_LENGTH and call('HGET', tasks, one)
  one = record and one
end
-- Neither does a task with one limit that lets it through. In a header without escaped characters,
-- only names of fields have quotes before their colon.
local gate, spent, full_at, busy, is_unmarked
if one and is_bare then
  local header = string.sub(record, 1, string.find(record, '\n', 1, true))
  local interval, burst, most, name =
    string.match(header, '"g":%["(%d+):(%d+):(%d+):([^"]+)"%]')
  if string.find(header, name and '\\' or '"g":[', 1, true) then
    one = nil
  elseif name and interval ~= '0' then
    spent, gate = base .. 'spent', name
    local stored = call('ZSCORE', spent, gate)
    local us = now * 1000
    interval, burst = interval + 0, math.max(burst, 1)
    local cost = math.min(math.max(string.match(header, '"gc":(%d+)') or 1, 1), burst)
    -- The call that adds a gate to `spent` forgets others, so it needs functions.
    full_at = stored and math.max(math.min(stored, us + burst * interval), us) + cost * interval
    one = stored and full_at - burst * interval <= us and one
  end
  if one and name and most ~= '0' then
    gate, busy = name, base .. 'busy:' .. name
    local size, held = call('ZCARD', busy), call('HLEN', base .. 'permits')
    is_unmarked = held == 0 and call('HEXISTS', base .. 'waiters', '#permits') == 0
    -- The one more makes them tables.
    one = size < most + 0 and size ~= SMALL and held ~= SMALL and one
  end
end
local seldom, gated, plain_ids, with_records, granted, wake_worker
if not one then
  seldom, gated, plain_ids, with_records, granted, wake_worker = rare()
end
local ids, from_ready, goes_on, more, next_due, write_mixed, strike_mixed, tried
local records, not_before, passed
if is_calm and not one then
  passed = gated()({ base = base, tasks = tasks, is_bare = is_bare }, entries, want, now)
end
if one then
  from_ready, more, next_due = 1, #entries > 1, due_at
  goes_on = more
elseif passed then
  ids, records, tried = passed.ids, passed.records, passed.tried
  from_ready, next_due = passed.from_ready, due_at
  goes_on = #entries > from_ready
  more = goes_on
elseif not is_usual then
  local mixed_ids, _, limited, gathered = seldom()
  if is_limited then
    mixed_ids = limited()
  end
  base = base or string.sub(meta, 1, -5)
  local queue = { meta = meta, ready = ready, priority = priority,
    priorities = base .. 'priorities', delayed = base .. 'delayed', retry = base .. 'retry',
    skips = base .. 'skips', wake = wake, due_at = due_at, is_due = is_due,
    has_tombstones = has_tombstones, tasks = tasks,
    has_lanes = version >= NEEDS_OF_LANES,
    gathered = version >= NEEDS_OF_GATHER and gathered }
  ids, from_ready, goes_on, more, next_due, write_mixed, strike_mixed, records, not_before =
    mixed_ids(queue, entries, want, now)
  tried = not queue.is_untried
else
  local length = #entries
  ids, from_ready, tried = plain_ids(entries, want)
  goes_on, next_due = length > from_ready, due_at
  more = goes_on
end
if not one and not records then
  ids, records = with_records(tasks, ids)
end
local fence = (flags[2] or 0) + 1
fence = whole(fence > now * 1024 and fence or now * 1024)
local token = seq .. ':' .. fence
-- One worker waits for the next due time. Otherwise a hundred idle workers would all claim at that
-- instant. A worker that left work in the queue claims again at once, so it need not wait.
-- While the queue's own limit lets no task start, what is due must wait, too, and when it lets one
-- start, one is there.
local wait, takes_timer, wakes_at = -1, false, next_due
if not_before then
  wakes_at = not_before < math.huge and not_before or nil
end
if wakes_at and not more then
  local timer = flags[6]
  if timer == nil then
    timer = call('HGET', meta, 'timer')
  end
  local holder, held_due = string.match(timer or '', '^(.+) (%d+)$')
  held_due = tonumber(held_due)
  wait = wakes_at - now
  if holder and holder ~= worker and held_due > now and held_due <= wakes_at then
    wait = whole(held_due - now) .. '/' .. whole(call('ZCARD', workers))
  else
    takes_timer = holder ~= worker or held_due ~= wakes_at
  end
end
local reply = one and { 'OK', token, now, more and 1 or 0, wait, 1, one, record, tries_of_one }
  or granted(token, now, more, wait, ids, records, tried and tries)
if more and is_woken == nil then
  is_woken = call('LLEN', wake) > 0
end
-- A lease is long while the worker holds nothing.
local lease_ms
if (one or #ids > 0) and expiry % 1 ~= 0 then
  local own_ms = call('HGET', string.sub(meta, 1, -5) .. 'worker:' .. worker, 'lease_ms')
  lease_ms = own_ms and tonumber(own_ms) or LEASE_MS
end

-- Writes.
if write_mixed then
  -- This runs before the claimed tasks leave their key, so that no key is emptied and written
  -- again.
  goes_on = write_mixed() or goes_on
end
if goes_on and from_ready == 1 then
  call('LPOP', ready)
elseif goes_on then
  call('LTRIM', ready, from_ready == want and want_text or whole(from_ready), '-1')
elseif from_ready > 0 or more then
  -- A wakeup alone would be a growing first write, which a full Redis refuses.
  call('UNLINK', ready)
end
if strike_mixed then
  strike_mixed()
end
if one or #ids > 0 then
  local last_claim = token .. (alone and ALONE or '') .. PADDING
  if one then
    call('HSET', working, LAST_CLAIM, last_claim, one, token)
  else
    local held = { LAST_CLAIM, last_claim, ids[1], token }
    for i = 2, #ids do
      held[2 * i + 1] = ids[i]
      held[2 * i + 2] = token
    end
    call('HSET', working, unpack(held))
  end
  call('HSET', meta, 'fence', fence)
  if lease_ms then
    call('ZADD', workers, whole(now + lease_ms), worker)
  end
elseif last and not alone and string.find(last, ALONE, 1, true) then
  call('HDEL', working, '')
  call('HSET', working, LAST_CLAIM, token .. PADDING)
  call('HSET', meta, 'fence', fence)
end
if passed then
  passed.write(passed.gates)
elseif one and full_at then
  call('ZADD', spent, whole(full_at), gate)
end
if one and busy then
  call('ZADD', busy, whole(now), one)
  call('HSET', base .. 'permits', one, gate .. '\n')
  if is_unmarked then
    call('HSET', base .. 'waiters', '#permits', '1')
  end
end
if next_due and next_due ~= due_at then
  call('HDEL', meta, '')
  call('HSET', meta, 'due', whole(next_due))
elseif due_at and not next_due then
  call('HDEL', meta, 'due', 'timer')
end
if takes_timer then
  call('HDEL', meta, '')
  call('HSET', meta, 'timer', worker .. ' ' .. whole(wakes_at))
end
if more and not is_woken then
  -- `wake_worker` checks the list again: `write_mixed` may have written a wakeup.
  if not wake_worker then
    local _
    _, _, _, _, _, wake_worker = rare()
  end
  wake_worker(wake)
end
return reply
