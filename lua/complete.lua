-- complete: Working → Success, up to 128
--
-- Ends attempts that succeeded, each only if the caller still holds it under its token. Keeps what
-- the handler returned, marks the biz id as done, tells who waits. A summary joins the last 1,000.
--
-- KEYS   the naming block, of which a call without extras passes six; then result and biz keys that
--        extras refer to
-- ARGV   those of a report; column: summary `<id> <ms it ended> …`; then, if there are extras:
--        how many, the extras, the results
--        extra: `<position>;<sides>;<result key index>;<result ttl ms>;<result index>;<biz key
--        index>`, sides being 1 where the task has any: tries, errors, a blob or a priority; an
--        index counts from 1 behind the fixed part, 0 is none. `<position>` alone for mere sides
-- REPLY  OK, then the position of each report whose lease is another's by now

local tasks, working, success, cancel, waiters = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local meta, tries, errors, blobs, priorities = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local FIXED_KEYS = 10
local now_override = ARGV[1]
-- The list of the last successes is cut in steps, so that most calls need not.
local SUCCESS_MAX, SUCCESS_SLACK = '1000', 1128

-- Checks.
local held, reply, first_id, count = still_held(working)
if #held == 0 then
  return reply
end
local ids = column(first_id, count, held)
local summaries = column(first_id + count, count, held)
local first_extra, now = first_id + 2 * count + 1, 0
local extra_count = tonumber(ARGV[first_extra - 1] or 0)
local is_held, results, biz_of, marks, sided, sides
if extra_count > 0 then
  results, biz_of, marks, sided = {}, {}, {}, {}
end
if extra_count > 0 and #held < count then
  is_held = {}
  for _, position in ipairs(held) do
    is_held[position] = true
  end
end
for i = 1, extra_count do
  local extra = ARGV[first_extra + i - 1]
  local position, has_sides = tonumber(extra), '1'
  local result, ttl, body, biz = '0', nil, nil, '0'
  if not position then
    position, has_sides, result, ttl, body, biz =
      string.match(extra, '^(%d+);(%d);(%d+);(%d+);(%d+);(%d+)$')
    position = tonumber(position)
  end
  if not is_held or is_held[position] then
    local id = ARGV[first_id + position - 1]
    if has_sides == '1' then
      sided[#sided + 1] = id
    end
    if result ~= '0' then
      results[#results + 1] = { key = KEYS[FIXED_KEYS + tonumber(result)], ttl = ttl,
        body = ARGV[first_extra + extra_count + tonumber(body) - 1] }
    end
    if biz ~= '0' then
      now = now > 0 and now or now_ms(now_override)
      biz_of[id] = KEYS[FIXED_KEYS + tonumber(biz)]
      marks[id] = redis.call('GET', biz_of[id])
    end
  end
end
local successes = redis.call('LLEN', success)
if sided and #sided > 0 then
  sides = { tries, errors, blobs, priorities }
  for _, side in ipairs(sides) do
    redis.call('HLEN', side)
  end
end
local queue, endings, write_ends
if now > 0 or redis.call('EXISTS', cancel, waiters) > 0 then
  local endings_of, note_end
  endings_of, note_end, write_ends = seldom()
  queue = { meta = meta, cancel = cancel, waiters = waiters }
  endings = endings_of(queue, ids)
  for i, id in ipairs(ids) do
    note_end(endings, i, id, 'success', biz_of and biz_of[id], marks and marks[id])
  end
end

-- Writes.
redis.call('HDEL', tasks, unpack(ids))
redis.call('HDEL', working, unpack(ids))
redis.call('RPUSH', success, unpack(summaries))
if successes + #ids > SUCCESS_SLACK then
  redis.call('LTRIM', success, '-' .. SUCCESS_MAX, '-1')
end
if sides then
  for _, side in ipairs(sides) do
    redis.call('HDEL', side, unpack(sided))
  end
end
for _, result in ipairs(results or {}) do
  redis.call('SET', result.key, result.body, 'PX', result.ttl)
end
if endings then
  write_ends(queue, endings, now)
end
return reply
