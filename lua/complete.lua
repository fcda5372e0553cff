-- complete: Working → Success, up to 128
--
-- The script ends attempts that succeeded, each only if the caller still holds it under its token.
-- It stores the value that the handler returned, marks the biz id as done, notifies waiting
-- clients, passes the permits of lanes on, gives those of limits back, lets tasks go on that waited
-- for these, and adds a summary to the last 1,000.
--
-- KEYS   the naming block, of which a call without extras but lanes passes seven; then the result
--        and biz keys that extras refer to
-- ARGV   those of a report; column: summary `<id> <ms it ended> …`; then, if there are extras: how
--        many, the extras, the results
--        extra: `<position>;<sides>;<result key index>;<result ttl ms>;<result index>;<biz key
--        index>`, where sides is 1 if the task has tries, errors, a blob or a priority; an index
--        counts from 1 after the fixed part, 0 is none. Short forms: `<position>` or
--        `<first>:<last>` for tasks that have only sides, `-<position>` for a task that has only a
--        biz id; its key follows the last key that an extra has named. `@<first>:<last>;<width>`
--        and then a lane for each of these tasks are the lanes; they come after all other extras.
--        `%<position>;<ms>` is how long the success of a task is remembered, in addition to its
--        other extra
-- REPLY  OK, then the position of each report whose lease belongs to another worker, then `out` if
--        effects for a relay were posted

local tasks, working, success, cancel, waiters = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local meta, permits, tries, errors, blobs = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local priorities = KEYS[11]
local FIXED_KEYS = 11
-- The byte of `@`.
local LANE_MARK = 64
local now_override = ARGV[1]
-- The list of the last successes may exceed its limit by one step, so that most calls do not cut
-- it.
local SUCCESS_MAX, SUCCESS_SLACK = '1000', 1128

-- Checks.
local held, reply, first_id, count = still_held(working)
if #held == 0 then
  return reply
end
local ids = column(first_id, count, held)
local summaries = column(first_id + count, count, held)
local first_extra, now = first_id + 2 * count + 1, 0
local past_extras = first_extra + tonumber(ARGV[first_extra - 1] or 0)
local first_lane, is_held = first_extra, nil
while first_lane < past_extras and string.byte(ARGV[first_lane]) ~= LANE_MARK do
  first_lane = first_lane + 1
end
if past_extras > first_extra and #held < count then
  is_held = {}
  for _, position in ipairs(held) do
    is_held[position] = true
  end
end
local results, biz_keys, biz_of, sided, remembered, moves, marks, sides, write_moves
if first_lane > first_extra then
  local _, _, _, read_extras = seldom()
  results, biz_keys, biz_of, sided, remembered =
    read_extras(FIXED_KEYS, first_id, first_extra, first_lane, past_extras, is_held)
  if #biz_keys > 0 then
    marks = redis.call('MGET', unpack(biz_keys))
  end
  sides = {}
  for _, side in ipairs(#sided > 0 and { tries, errors, blobs, priorities } or {}) do
    if redis.call('HLEN', side) > 0 then
      sides[#sides + 1] = side
    end
  end
end
if first_lane < past_extras then
  local leave_lanes, pass_permits
  leave_lanes, pass_permits, write_moves = laned()
  moves = leave_lanes(meta, first_id, first_lane, past_extras, is_held)
  pass_permits(moves)
end
local base, outcomes = string.sub(meta, 1, -5), nil
if remembered then
  local _, _, outcomes_of = waiting()
  outcomes = outcomes_of(base, remembered, biz_of, biz_keys)
end
if moves or marks or outcomes then
  now = now_ms(now_override)
end
local successes = redis.call('LLEN', success)
local queue, endings, write_ends, flow, write_success, back, give_back
if marks or redis.call('EXISTS', cancel, waiters, permits, base .. 'ties') > 0 then
  local endings_of, note_end, permits_of, _
  endings_of, note_end, write_ends, _, permits_of, give_back = seldom()
  back = permits_of(meta, ids)
  if back then
    now = now_ms(now_override)
  end
  queue = { meta = meta, cancel = cancel, waiters = waiters }
  endings = endings_of(queue, ids)
  for i, id in ipairs(ids) do
    local biz = biz_of and biz_of[id]
    note_end(endings, i, id, 'success', nil, biz and biz_keys[biz], biz and marks[biz])
  end
  if redis.call('HLEN', base .. 'ties') > 0 then
    local flow_of_success
    flow_of_success, write_success = waiting()
    now = now_ms(now_override)
    flow = flow_of_success(meta, ids, biz_of, biz_keys, now)
  end
end

-- Writes.
redis.call('HDEL', tasks, unpack(ids))
redis.call('HDEL', working, unpack(ids))
redis.call('RPUSH', success, unpack(summaries))
if successes + #ids > SUCCESS_SLACK then
  redis.call('LTRIM', success, '-' .. SUCCESS_MAX, '-1')
end
if results then
  for _, side in ipairs(sides) do
    redis.call('HDEL', side, unpack(sided))
  end
  for _, result in ipairs(results) do
    redis.call('SET', result.key, result.body, 'PX', result.ttl)
  end
end
if outcomes then
  for _, outcome in ipairs(outcomes) do
    redis.call('SET', outcome.key, outcome.id .. ' ' .. whole(now), 'PX', outcome.keep)
  end
end
if endings then
  write_ends(queue, endings, now)
end
if moves then
  write_moves(moves, now)
end
if back then
  give_back(back, now)
end
if flow then
  write_success(flow, now)
  reply = with_out(reply, flow)
end
return reply
