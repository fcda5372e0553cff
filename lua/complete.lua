-- complete: Working → Success, up to 128
--
-- Ends attempts that succeeded, each only if the caller still holds it under its token. Keeps what
-- the handler returned, marks the biz id as done, tells who waits. A summary joins the last 1,000.
--
-- KEYS   the naming block, then result and biz keys that extras refer to
-- ARGV   those of a report; column: summary `<id> <ms it ended> …`; then, if there are extras:
--        how many, the extras, the results
--        extra: `<position>;<result key index>;<result ttl ms>;<result index>;<biz key index>`; an
--        index counts from 1 behind the fixed part, 0 is none
-- REPLY  OK, then the position of each report whose lease is another's by now

local tasks, working, success, tries, errors = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local blobs, cancel, priorities = KEYS[6], KEYS[7], KEYS[8]
local waiters, meta = KEYS[9], KEYS[10]
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
local first_extra, extras, is_held, now = first_id + 2 * count + 1, {}, nil, nil
local extra_count = tonumber(ARGV[first_extra - 1] or 0)
if extra_count > 0 then
  now, is_held = now_ms(now_override), {}
  for _, position in ipairs(held) do
    is_held[position] = true
  end
end
for i = 1, extra_count do
  local position, result, ttl, body, biz =
    string.match(ARGV[first_extra + i - 1], '^(%d+);(%d+);(%d+);(%d+);(%d+)$')
  position = tonumber(position)
  if is_held[position] then
    local extra = { id = ARGV[first_id + position - 1], ttl = ttl }
    if result ~= '0' then
      extra.result = KEYS[FIXED_KEYS + tonumber(result)]
      extra.body = ARGV[first_extra + extra_count + tonumber(body) - 1]
    end
    if biz ~= '0' then
      extra.biz = KEYS[FIXED_KEYS + tonumber(biz)]
      extra.mark = redis.call('GET', extra.biz)
    end
    extras[#extras + 1] = extra
  end
end
local successes = redis.call('LLEN', success)
local sides, waiting = { tries, errors, blobs, cancel, priorities }, nil
local used = redis.call('EXISTS', waiters, unpack(sides)) > 0
if used then
  for _, side in ipairs(sides) do
    redis.call('HLEN', side)
  end
  waiting = waiters_of(meta, waiters, ids)
end

-- Writes.
redis.call('HDEL', tasks, unpack(ids))
redis.call('HDEL', working, unpack(ids))
redis.call('RPUSH', success, unpack(summaries))
if successes + #ids > SUCCESS_SLACK then
  redis.call('LTRIM', success, '-' .. SUCCESS_MAX, '-1')
end
if used then
  for _, side in ipairs(sides) do
    redis.call('HDEL', side, unpack(ids))
  end
end
for _, extra in ipairs(extras) do
  if extra.result then
    redis.call('SET', extra.result, extra.body, 'PX', extra.ttl)
  end
  if extra.biz then
    biz_succeed(extra.biz, extra.mark, extra.id, now)
  end
end
if waiting then
  for i = 1, #ids do
    notify(meta, waiters, ids[i], waiting[i], 'success')
  end
end
return reply
