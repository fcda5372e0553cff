-- submit: ∅ → Ready | Delayed | Blocked, up to 1,000 tasks of one queue
--
-- The script admits each task unless a stored task or an earlier task of this call holds its biz
-- id. If the caller states that ids may exist, the script also does not admit a task that is
-- already stored, in any state, or a step or a member of a flow that has ended. The client's ledger
-- keeps the answer of each call in a slot, so a call that is repeated after a lost reply gets that
-- answer and adds nothing. The next call in that slot names the last answer that its client
-- received. If the slot has an older answer, this history has lost calls; the ledger records the
-- loss and the reply reports it. A full Redis refuses the whole call. A plain call, whose tasks
-- have no options and whose client need not be kept, has few arguments: each argument costs Redis a
-- tenth of the cost of a task.
-- A task of a lane is ready if the lane has a permit for it. Otherwise it waits in the lane. A task
-- waits for its prerequisites before its due time and before its lane.
--
-- KEYS   the naming block, of which a plain call and one with only lanes and limits pass four; then
--        the biz keys of options
-- ARGV   1 now override · 2 call number · 3 ledger slot · 4 the client's clock, or '' if the ids do
--        not show when it made these tasks · 5 how many tasks, '' in a plain call; then for each
--        task: id, record; then, except in a plain call: the client to be kept another day, or '';
--        the last call of this slot that was answered, 16 less than this one in a plain call, or
--        the mark that the ledger of a relay must have, which is no number; how
--        many options; '' if all ids are new, 1 if they may exist, 2 if several tasks may also have
--        one id; the options of the tasks that are not plain, in their order; blobs
--        options: `<position>;<due>;<priority>;<biz key>;<biz window ms>;<blob>;<stamp>` with due
--        `in<ms>`, `at<ms>` or ''; keys and blobs count from 1 after the fixed part, 0 is none;
--        stamp is 1 if the record must state when it was accepted, else 0. `<position>` alone is a
--        biz id without a window and without other options; its key follows the last key that an
--        option has named. `+` is in calls with members of groups, or tasks that take a result:
--        older scripts must not change the queue. `%<first>:<last>;<gates>` has the names of the
--        gates of these tasks, with line breaks between them; these come after the options so far.
--        `*<first>:<last>;<wait ms>:<max>:<task>:<key>` are tasks that run together; these come
--        before the gates. `@<first>:<last>;<width>` and then a lane for each of these tasks are
--        the lanes; they come after all other options. Before all others come, for each
--        prerequisite of a task, `&<position>;<mark>;<queue>;<reference>`, queue being '' for this
--        one, or `&<position>;<mark>;=<position>` for a task of this call if all are new;
--        `&<position>;@;;` if the task has a lane; `&<position>;!;;<ms>` if it gives up; and
--        `&<position>;~;;` if its first one is the step before it, which comes later.
--        Before these come the tasks that may have ended before: `=<first>:<last>` for steps whose
--        success is remembered, and for members with positions one after the other
--        `=<first>:<last>;<position in the group>;<ms when it was made>;<queue>;<group>`
-- REPLY  OK, then `lost` if the ledger has lost calls, then `<position>=<owner id>` for each task
--        that was not admitted: the owner of its biz id, or the task itself if it is already
--        stored; or `<position>=*<ids>` for a task that would wait for itself, with the tasks
--        between and commas between them; then `out` if effects wait for a relay: those of this
--        call, or of one that has stored these tasks before
-- REFUSE FORGOTTEN, STALE if the ledger of a relay has another mark

-- A read of a local name costs Redis a third of a read of a global one.
local KEYS, ARGV, call = KEYS, ARGV, redis.call
local tasks, ready, wake, ledger = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local priority, priorities, delayed, blobs, ledgers = KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local now_override, number, slot, here = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local plain, first_id, first_task = ARGV[5] == '', ARGV[6], ARGV[7]
local meta = KEYS[10]
local FIXED_KEYS, FIRST_TASK, LEDGER_TOUCH_MS, SLOTS = 10, 6, '86400000', 16
-- An answer with words names a task, so it has more bytes.
local NUMBER_BYTES = 20
-- As of `append`.
local SHORT, STEP = 16, 64
-- The bytes of `%` and `@`.
local GATE_MARK, LANE_MARK = 37, 64
local ONE_LANE = '@1:1;1'
local count = plain and (#ARGV + 1 - FIRST_TASK) / 2 or tonumber(ARGV[5])
local past_tasks = FIRST_TASK + 2 * count
-- Arithmetic with a text costs Redis half of `tonumber`.
local client, options = ARGV[past_tasks] or '', (ARGV[past_tasks + 2] or 0) + 0
local since = plain and number - SLOTS or tonumber(ARGV[past_tasks + 1]) or -1
local may_exist, first_option = (ARGV[past_tasks + 3] or '') ~= '', past_tasks + 4
local past_options = first_option + options

-- Checks.
local answered = call('HGET', ledger, slot)
-- A text this short has no words, and arithmetic with a text costs Redis half of `tonumber`.
local last = not answered and 0 or #answered < NUMBER_BYTES and answered + 0 or nil
-- An answer without words is only a call number, usually that of the previous call. Then the script
-- parses nothing.
if last ~= since and answered then
  local answered_number, answer = string.match(answered, '^(%d+) ?(.*)$')
  if answered_number == number then
    local reply = { 'OK' }
    for taken in string.gmatch(answer, '%S+') do
      reply[#reply + 1] = taken
    end
    -- A WAIT after this call waits for the writes of its connection. These two commands write,
    -- change nothing, and are not refused by a full Redis.
    call('PEXPIRE', ledger, LEDGER_TOUCH_MS)
    call('PERSIST', ledger)
    -- The caller may not know yet that the first call has posted effects.
    if not plain and call('ZCARD', string.sub(tasks, 1, -6) .. 'outboxes') > 0 then
      reply[#reply + 1] = 'out'
    end
    return reply
  end
  last = tonumber(answered_number)
  if last > tonumber(number) then
    return { 'FORGOTTEN' }
  end
end
-- A submit of one task needs no lists and no functions if the task is plain, or has limits alone,
-- or is in a lane of one permit.
local is_short = not plain and count == 1 and not priority
local is_gated = is_short and options == 1 and string.byte(ARGV[first_option]) == GATE_MARK
local is_laned = is_short and options == 2 and ARGV[first_option] == ONE_LANE
local one = (plain and count == 1 or is_gated or is_laned) and first_id
local lost, now_ms, whole, append, seldom, laned, gated, waiting
if not one or last < since then
  now_ms, whole, append, seldom, laned, gated, waiting = rare()
end
if last < since then
  local _, _, lost_with = seldom()
  lost = lost_with(call('HGET', ledger, 'lost' .. slot), last, number)
end
local length = call('LLEN', ready)
local is_woken = true
if not (plain or one) or length <= SHORT or (length + count) % STEP < count then
  is_woken = call('LLEN', wake) > 0
end
-- An id contains the time of its birth by its client's clock. A wrong clock must not make the task
-- older than others. An id that the program has chosen may contain any time.
local time = now_override == '' and call('TIME')
local second = time and time[1] or string.sub(now_override, 1, -4)
local clocks_agree, now = second == string.sub(here, 1, -4), nil
if priority or not clocks_agree then
  if not seldom then
    now_ms, whole, append, seldom, laned, gated, waiting = rare()
  end
  now = now_ms(now_override)
  clocks_agree = here ~= '' and math.abs(now - tonumber(here)) <= 1000
  call('HLEN', tasks)
end
one = clocks_agree and one
if one and is_gated then
  -- Unless the queue is new to limits, or tasks wait with which this one may have to wait.
  local base = string.sub(tasks, 1, -6)
  local facts = call('HMGET', base .. 'meta', 'limited', 'blocked')
  if not facts[1]
    or facts[2] and facts[2] ~= '0' and call('EXISTS', base .. 'waits') == 1 then
    one = nil
  end
end
-- The lane of the only task: its name and key, how many tasks it has; the place of this one and the
-- count of blocked tasks, if it must wait.
local base, lane_name, lane, lane_size, place, blocked
if one and is_laned then
  base, lane_name = string.sub(tasks, 1, -6), ARGV[first_option + 1]
  local facts = call('HMGET', base .. 'meta', 'widest', 'places', 'blocked', 'needs')
  -- The queue must have had lanes, all of one permit each.
  one = facts[4] and not facts[1] and one
  lane = one and base .. 'lane:' .. lane_name
  lane_size = one and call('ZCARD', lane) or 0
  if lane_size > 0 then
    place = string.format('%d', (facts[2] or 0) + 1)
    blocked = string.format('%d', (facts[3] or 0) + 1)
  end
  if lane_size == 1 then
    call('ZCARD', base .. 'lanes')
    local ms = time and time[1] * 1000 + math.floor(time[2] / 1000) or now_override
    now = string.format('%d', ms)
  end
end
if (is_gated or is_laned) and not one then
  call('LLEN', wake)
end
if not one and not seldom then
  now_ms, whole, append, seldom, laned, gated, waiting = rare()
end
if client ~= '' then
  call('ZCARD', ledgers)
end

local asked, apart, ids, joins, write_lanes, gate_joins, write_gate_joins
if not one and (options > 0 or may_exist) then
  -- A relay that was frozen may send what another one has sent before Redis lost the ledger.
  if since < 0 and redis.call('HGET', ledger, 'mark') ~= ARGV[past_tasks + 1] then
    return { 'STALE' }
  end
  local first_gate, first_lane = nil, first_option
  while first_lane < past_options and string.byte(ARGV[first_lane]) ~= LANE_MARK do
    if not first_gate and string.byte(ARGV[first_lane]) == GATE_MARK then
      first_gate = first_lane
    end
    first_lane = first_lane + 1
  end
  first_gate = first_gate or first_lane
  if first_gate > first_option or may_exist then
    local queue = { meta = meta, tasks = tasks, priority = priority, priorities = priorities,
      delayed = delayed, blobs = blobs, wake = wake, biz_keys = { unpack(KEYS, FIXED_KEYS + 1) },
      blobs_given = { unpack(ARGV, past_options) }, waiting = waiting, here = here }
    ids = {}
    for i = 1, count do
      ids[i] = ARGV[FIRST_TASK + 2 * i - 2]
    end
    local _, read_options, _, gathered, again = seldom()
    queue.gathered, queue.again = gathered, again
    -- One `unpack` takes at most about 8,000 values.
    local given = {}
    for i = first_option, first_gate - 1 do
      given[#given + 1] = ARGV[i]
    end
    asked = read_options(queue, given, ids, now, may_exist, ARGV[past_tasks + 3] == '2')
  end
  apart = asked and asked.apart or {}
  if first_lane < past_options then
    local join_lanes
    join_lanes, write_lanes = laned()
    joins = join_lanes(tasks, apart, FIRST_TASK, first_lane, past_options)
    now = now or #joins.backlogs > 0 and now_ms(now_override)
  end
  if first_gate < first_lane then
    local join_gates
    join_gates, write_gate_joins = gated()
    gate_joins = join_gates(tasks, apart, asked, FIRST_TASK, first_gate, first_lane)
    now = now or gate_joins.count > 0 and now_ms(now_override)
  end
end
local is_whole = ids and not next(apart)
local entries, in_ready = is_whole and ids or not one and {} or nil, 0
for i = 1, (one or is_whole) and 0 or count do
  if not (apart and apart[i]) then
    in_ready = in_ready + 1
    entries[in_ready] = ARGV[FIRST_TASK + 2 * i - 2]
  end
end
local records, first_record, last_record = ARGV, FIRST_TASK, past_tasks - 1
local answer = number
if asked and (#asked.taken > 0 or next(asked.stamps)) then
  records = {}
  for i = 1, count do
    if asked.apart[i] ~= 'taken' then
      local record, stamp = ARGV[FIRST_TASK + 2 * i - 1], asked.stamps[i]
      records[#records + 1] = ARGV[FIRST_TASK + 2 * i - 2]
      records[#records + 1] = stamp and stamp .. record or record
    end
  end
  first_record, last_record = 1, #records
end
if asked and #asked.taken > 0 then
  answer = number .. ' ' .. table.concat(asked.taken, ' ')
end

-- Writes.
if one then
  call('HSET', tasks, one, first_task)
end
for first = first_record, one and 0 or last_record, 4000 do
  call('HSET', tasks, unpack(records, first, math.min(first + 3999, last_record)))
end
call('HSET', ledger, slot, answer)
if lost then
  call('HSET', ledger, 'lost' .. slot, lost)
end
if lane then
  call('ZADD', lane, place or '-1', one)
end
if place then
  if lane_size == 1 then
    call('ZADD', base .. 'lanes', 'NX', now, lane_name)
  end
  call('HSET', base .. 'meta', 'places', place, 'blocked', blocked)
elseif one then
  call('RPUSH', ready, one)
  if not is_woken then
    call('RPUSH', wake, '1')
  end
elseif clocks_agree then
  append(ready, wake, entries)
else
  local add_ready = seldom()
  add_ready(ready, priority, wake, entries, nil, now)
end
if client ~= '' then
  call('ZADD', ledgers, whole(now), client)
end
if joins then
  write_lanes(joins, now)
end
if gate_joins then
  write_gate_joins(gate_joins, now)
end
if not asked then
  return lost and { 'OK', 'lost' } or 'OK'
end
asked.write()
local reply = lost and { 'OK', 'lost' } or { 'OK' }
for _, taken in ipairs(asked.taken) do
  reply[#reply + 1] = taken
end
if asked.posts then
  reply[#reply + 1] = 'out'
end
return reply
