-- complete: Working → Success, up to 128
--
-- The script ends attempts that succeeded, each only if the caller still holds it under its token.
-- It stores the value that the handler returned, marks the biz id as done, notifies waiting
-- clients, passes the permits of lanes on, gives those of limits back, frees the tasks that waited
-- for these, and adds a summary to the last 1,000. Those that leave these go to the history, if the
-- queue keeps one.
--
-- KEYS   the naming block, of which a call without extras but lanes passes seven; then the result
--        and biz keys that extras refer to
-- ARGV   those of a report; column: summary `<id> <ms it ended> …`; then, if there are extras: how
--        many, the extras, the results. If the only task of a call is in a lane of one permit and
--        has no other extra, the token is the second argument, although the extras follow
--        extra: `<position>;<sides>;<result key index>;<result ttl ms>;<result index>;<biz key
--        index>`, where sides is 1 if the task has tries, errors, a blob or a priority; an index
--        counts from 1 after the fixed part, 0 is none. Short forms: `<position>` or
--        `<first>:<last>` for tasks that have only sides, `-<position>` for a task that has only a
--        biz id; its key follows the last key that an extra has named. `@<first>:<last>;<width>`
--        and then a lane for each of these tasks are the lanes; they come after all other extras.
--        `%<position>;<ms>` is how long the success of a task is remembered, in addition to its
--        other extra. After these and before the lanes come the members of groups: for each run of
--        members of one group `&<first>:<last>;<last position in the group>;<home queue>;<group>`,
--        the queue being '' for this one, then for each its position in the group and its result.
--        `=` before the group means that all have the same result: it comes first, and then only
--        their positions
-- REPLY  OK, then the position of each report whose lease belongs to another worker, then `out` if
--        effects for a relay were posted

-- A read of a local name costs Redis a third of a read of a global one.
local KEYS, ARGV, call = KEYS, ARGV, redis.call
local tasks, working, success, waiters = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local tries, errors, blobs, priorities = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local FIXED_KEYS = 8
-- The byte of `@`.
local LANE_MARK = 64
-- The byte of `&`.
local MEMBER_MARK = 38
-- All but the first of a report of one task that is plain, or only in a lane. A call of several
-- runs has other arguments there.
local now_override, token, id, summary = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local lane_word, lane_name = ARGV[6], ARGV[7]
local ONE_TASK_ARGS, ONE_LANE_ARGS, ONE_LANE = 4, 7, '@1:1;1'
-- As of `append` and `stamp_of`.
local SHORT, STEP = 16, 64
local DIGITS = '0123456789abcdefghijklmnopqrstuvwxyz'
-- The list of the last successes may exceed its limit by one step, so that most calls do not cut
-- it.
local SUCCESS_MAX, SUCCESS_SLACK = '1000', 1128

-- Checks.
-- A report of one task, for example from a worker with one slot, needs no lists and no functions if
-- the task is plain, or is in a lane of a queue whose lanes have one permit each.
local is_laned = #ARGV == ONE_LANE_ARGS and lane_word == ONE_LANE
local one = (is_laned or #ARGV == ONE_TASK_ARGS) and id
local held, reply, first_id, count, ids = nil, 'OK', ONE_TASK_ARGS - 1, 1, nil
local now_ms, whole, still_held, column, permitted, laned, counting, waiting, looking, seldom
if one and call('HGET', working, one) ~= token then
  return { 'OK', 1 }
end
-- The key of its lane, the next task of the lane, whether none waits behind that one, and the stamp
-- with which that one becomes ready.
local base, lane, next_one, is_calm, stamp
if is_laned then
  base = string.sub(tasks, 1, -6)
  lane = base .. 'lane:' .. lane_name
  local behind = call('ZRANGE', lane, '1', '2')
  next_one, is_calm = behind[1], not behind[2]
  one = not call('HGET', base .. 'meta', 'widest') and one
  if next_one and call('HLEN', base .. 'priorities') > 0 then
    one = false
  end
end
if not one then
  now_ms, whole, still_held, column, permitted, laned, counting, waiting, looking, seldom = rare()
  if not lane then
    held, reply, first_id, count = still_held(working, 1)
  end
  if held and #held == 0 then
    return reply
  end
end
local first_summary, first_extra, now = first_id + count, first_id + 2 * count + 1, 0
-- The lane of a single task is not an extra here.
local past_extras = first_extra + (not (one and lane) and ARGV[first_extra - 1] or 0)
local first_word, is_held = first_extra, nil
while first_word < past_extras do
  local byte = string.byte(ARGV[first_word])
  if byte == LANE_MARK or byte == MEMBER_MARK then
    break
  end
  first_word = first_word + 1
end
if past_extras > first_extra and held then
  is_held = {}
  for _, position in ipairs(held) do
    is_held[position] = true
  end
end
local first_lane = first_word
if first_extra < past_extras then
  base = base or string.sub(tasks, 1, -6)
end
local members, write_members
if first_word < past_extras and string.byte(ARGV[first_word]) == MEMBER_MARK then
  local read_members, count_members
  read_members, count_members, write_members = counting()
  members, first_lane = read_members(base, first_id, first_word, past_extras, is_held)
  count_members(members, is_held)
end
local results, biz_keys, biz_of, sided, remembered, moves, marks, sides, write_left
if first_word > first_extra then
  local _, _, read_extras = seldom()
  results, biz_keys, biz_of, sided, remembered =
    read_extras(FIXED_KEYS, first_id, first_extra, first_word, past_extras, is_held)
  if #biz_keys > 0 then
    marks = call('MGET', unpack(biz_keys))
  end
  sides = {}
  for _, side in ipairs(#sided > 0 and { tries, errors, blobs, priorities } or {}) do
    if call('HLEN', side) > 0 then
      sides[#sides + 1] = side
    end
  end
end
if first_lane < past_extras then
  local read_left
  read_left, write_left = laned()
  moves = read_left(base, first_id, first_lane, past_extras, is_held)
end
local outcomes
if remembered then
  local _, _, outcomes_of = waiting()
  outcomes = outcomes_of(base, remembered, biz_of, biz_keys)
end
if moves or marks or outcomes or members and #members.ended > 0 then
  now = now_ms(now_override)
end
local successes = call('LLEN', success)
-- How many of the summaries this call drops; `meta` counts them, and the history keeps them.
local history, write_history
local cut = successes + (held and #held or count)
cut = cut > SUCCESS_SLACK and cut - SUCCESS_MAX or nil
if cut then
  base = base or string.sub(tasks, 1, -6)
  local wanted = call('HGET', base .. 'meta', 'history')
  if wanted then
    now_ms, whole, still_held, column, permitted, laned, counting, waiting, looking, seldom = rare()
    local _, _, _, keeping = seldom()
    local history_of_cut
    history_of_cut, write_history = keeping()
    history = history_of_cut(base, wanted, success, cut, now_ms(now_override))
  end
end
local back, give_back, ends, write_ends
local has_effects = members and #members.there > 0
-- All that a success without extras means for others is in `waiters`, or has a mark there.
local awaited, busy = call('HLEN', waiters), nil
if marks or has_effects or awaited > 0 then
  local home, is_settled = string.sub(tasks, 1, -6), false
  local has_permits = not marks and not has_effects and awaited == 1
    and call('HEXISTS', waiters, '#permits') == 1
  if one and has_permits then
    -- If nobody waits for the permit of the task, it needs no lists and no functions either.
    local gates = call('HGET', home .. 'permits', one)
    local gate = gates and string.match(gates, '^([^\n]+)\n$')
    if gate and call('ZCARD', home .. 'gate:' .. gate) == 0 then
      busy = home .. 'busy:' .. gate
      call('ZCARD', busy)
    end
    is_settled = busy or not gates and call('HLEN', home .. 'permits') > 0
  end
  if one and not is_settled then
    now_ms, whole, still_held, column, permitted, laned, counting, waiting, looking, seldom =
      rare()
  end
  ids = not is_settled and column(first_id, count, held)
  if has_permits and not is_settled and call('HLEN', home .. 'permits') > 0 then
    local permits_of
    permits_of, give_back = permitted()
    back = permits_of(home .. 'meta', ids)
    if back and back.is_awaited then
      now = now_ms(now_override)
    end
  elseif not is_settled then
    local biz = { marks = marks, of = biz_of, keys = biz_keys }
    local seen = looking()(home, waiters, working, awaited, ids, biz, members)
    if seen then
      local ends_of
      ends_of, write_ends = seldom()
      now = now_ms(now_override)
      ends = ends_of(home, waiters, seen, ids, biz, now, { results = results, members = members })
    end
  end
end
local is_woken = true
if one and next_one then
  if is_calm then
    call('ZCARD', base .. 'lanes')
  end
  local length = call('LLEN', base .. 'ready')
  if length <= SHORT or (length + 1) % STEP == 0 then
    is_woken = call('LLEN', base .. 'wake') > 0
  end
  local digits, ms = {}, nil
  if now_override == '' then
    local time = call('TIME')
    ms = time[1] * 1000 + math.floor(time[2] / 1000)
  else
    ms = now_override + 0
  end
  for place = 8, 1, -1 do
    local digit = ms % 36
    digits[place] = string.sub(DIGITS, digit + 1, digit + 1)
    ms = (ms - digit) / 36
  end
  stamp = table.concat(digits)
end

-- Writes.
if one then
  call('HDEL', tasks, one)
  call('HDEL', working, one)
  call('RPUSH', success, summary)
elseif held then
  ids = column(first_id, count, held)
  call('HDEL', tasks, unpack(ids))
  call('HDEL', working, unpack(ids))
  call('RPUSH', success, unpack(column(first_summary, count, held)))
else
  call('HDEL', tasks, unpack(ARGV, first_id, first_summary - 1))
  call('HDEL', working, unpack(ARGV, first_id, first_summary - 1))
  call('RPUSH', success, unpack(ARGV, first_summary, first_summary + count - 1))
end
if cut then
  call('LTRIM', success, '-' .. SUCCESS_MAX, '-1')
  call('HINCRBY', base .. 'meta', 'cut_successes', cut)
  if history then
    write_history(history)
  end
end
if results then
  for _, result in ipairs(results) do
    call('SET', result.key, result.body, 'PX', result.ttl)
  end
end
if outcomes then
  for _, outcome in ipairs(outcomes) do
    call('SET', outcome.key, outcome.id .. ' ' .. whole(now), 'PX', outcome.keep)
  end
end
if members then
  write_members(members, now)
end
if moves then
  write_left(moves, now)
elseif one and lane then
  if next_one then
    call('ZADD', lane, '-1', next_one)
  end
  call('ZREM', lane, one)
end
if stamp then
  if is_calm then
    call('ZREM', base .. 'lanes', lane_name)
  end
  call('HINCRBY', base .. 'meta', 'blocked', '-1')
  call('RPUSH', base .. 'ready', stamp .. ':' .. next_one)
  if not is_woken then
    call('RPUSH', base .. 'wake', '1')
  end
end
if busy then
  call('HDEL', string.sub(tasks, 1, -6) .. 'permits', one)
  call('ZREM', busy, one)
elseif back then
  give_back(back, now)
end
if ends then
  reply = write_ends(ends, reply, now)
end
if results then
  -- After arguments of other tasks may have joined them.
  for _, side in ipairs(sides) do
    call('HDEL', side, unpack(sided))
  end
end
return reply
