-- demote: the holder of a post counts a failure of a row, or forgets the failures of one
--
-- A row that has failed is set aside for a while, and longer after each failure.
--
-- KEYS   the naming block
-- ARGV   1 now override · 2 worker · 3 post · 4 fence · 5 key of the row · 6 the first wait ms,
--        '' to forget its failures · 7 the longest wait ms
-- REPLY  OK, how often it has failed, the ms until when it is set aside
-- REFUSE STALE if the caller does not hold the post under that fence

local posts, failures, aside = KEYS[1], KEYS[2], KEYS[3]
local now, worker, post, fence, row = now_ms(ARGV[1]), ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local first_ms, longest_ms = tonumber(ARGV[6]), tonumber(ARGV[7])
-- Above this many rows, the one that is due next is forgotten.
local ROWS_MAX = 10000
-- A row that has not failed again for this time after its wait is forgotten.
local FORGET_MS = 86400000
local SWEEP_MAX = 16

-- Checks.
local owned = worker .. ' ' .. fence .. ' '
local value = redis.call('HGET', posts, post)
if not value or string.sub(value, 1, #owned) ~= owned then
  return { 'STALE' }
end
local times = tonumber(redis.call('HGET', failures, row) or 0)
local forgotten_at = whole(now - FORGET_MS)
local old = redis.call('ZRANGEBYSCORE', aside, '-inf', forgotten_at, 'LIMIT', 0, SWEEP_MAX)
if times == 0 and redis.call('ZCARD', aside) >= ROWS_MAX then
  old[#old + 1] = redis.call('ZRANGE', aside, 0, 0)[1]
end
local removed = {}
for _, name in ipairs(old) do
  if name ~= row then
    removed[#removed + 1] = name
  end
end
if not first_ms then
  removed[#removed + 1] = row
end

-- Writes.
-- No post has this name. A row may have any.
redis.call('HDEL', posts, '')
local wait_ms = 0
if first_ms then
  wait_ms = math.min(first_ms * 2 ^ math.min(times, 30), longest_ms)
  times = times + 1
  redis.call('HSET', failures, row, whole(times))
  redis.call('ZADD', aside, whole(now + wait_ms), row)
else
  times = 0
end
if #removed > 0 then
  redis.call('HDEL', failures, unpack(removed))
  redis.call('ZREM', aside, unpack(removed))
end
return { 'OK', whole(times), whole(now + wait_ms) }
