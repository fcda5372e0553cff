-- complete: Working → Success, up to 128
--
-- Ends attempts that succeeded, each only if the caller still holds it under its token. Keeps what
-- the handler returned, marks the biz id as done, tells who waits. A summary joins the last 1,000.
--
-- KEYS   the naming block, then result and biz keys that extras refer to
-- ARGV   1 now override · 2 count, then for each: id, token, summary, extra; then results
--        extra: '' or `<result key index>;<result ttl ms>;<result index>;<biz key index>`;
--        an index counts from 1 behind the fixed part, 0 is none
-- REPLY  OK, then the position of each report whose lease is another's by now

local tasks, working, success, tries, errors = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local restamp, blobs, cancel, priorities = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local waiters, meta = KEYS[10], KEYS[11]
local FIXED_KEYS = 11
local now, count = now_ms(ARGV[1]), tonumber(ARGV[2])
local FIXED_ARGS = 2
local SUCCESS_MAX = 1000

-- Checks.
local held, reply = still_held(working, FIXED_ARGS + 1, 4, count)
if #held == 0 then
  return reply
end
local ids, summaries, extras, ended_at = {}, {}, {}, whole(now)
for i, at in ipairs(held) do
  ids[i] = ARGV[at]
  summaries[i] = ARGV[at] .. ' ' .. ended_at .. ' ' .. ARGV[at + 2]
  if ARGV[at + 3] ~= '' then
    local result, ttl, body, biz = string.match(ARGV[at + 3], '^(%d+);(%d+);(%d+);(%d+)$')
    local extra = { id = ARGV[at], ttl = ttl }
    if result ~= '0' then
      extra.result = KEYS[FIXED_KEYS + tonumber(result)]
      extra.body = ARGV[FIXED_ARGS + 4 * count + tonumber(body)]
    end
    if biz ~= '0' then
      extra.biz = KEYS[FIXED_KEYS + tonumber(biz)]
      extra.mark = redis.call('GET', extra.biz)
    end
    extras[#extras + 1] = extra
  end
end
redis.call('HLEN', tasks)
redis.call('LLEN', success)
local sides = { tries, errors, restamp, blobs, cancel, priorities }
local used = redis.call('EXISTS', unpack(sides))
if used > 0 then
  for _, side in ipairs(sides) do
    redis.call('HLEN', side)
  end
end
local waiting = waiters_of(meta, waiters, ids)

-- Writes.
redis.call('HDEL', working, unpack(ids))
redis.call('HDEL', tasks, unpack(ids))
if used > 0 then
  for _, side in ipairs(sides) do
    redis.call('HDEL', side, unpack(ids))
  end
end
redis.call('LPUSH', success, unpack(summaries))
redis.call('LTRIM', success, 0, SUCCESS_MAX - 1)
for _, extra in ipairs(extras) do
  if extra.result then
    redis.call('SET', extra.result, extra.body, 'PX', extra.ttl)
  end
  if extra.biz then
    biz_succeed(extra.biz, extra.mark, extra.id, now)
  end
end
for i = 1, #ids do
  notify(meta, waiters, ids[i], waiting and waiting[i], 'success')
end
return reply
