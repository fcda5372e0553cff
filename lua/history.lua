-- history: a part of what is kept of the tasks that succeeded or died on a day
--
-- The entries of a day have numbers from 0 on; the first ones may have been removed. An entry has
-- lines of tasks, the latest last. After the last entry come the last successes of the queue, of
-- any day: they are in no entry yet.
--
-- KEYS   the naming block
-- ARGV   1 `success` or `dead` · 2 number of the day since the epoch · 3 the first entry to read
--        · 4 how many
-- REPLY  OK, the number of the first entry that was read, how many were read, these, how many
--        follow them; then, if none does, the last successes

local history_bytes, success = KEYS[1], KEYS[2]
local kind, day, first, most = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local ENTRIES_MAX, BYTES_MAX, SUCCESSES = 256, 262144, '-2000'

-- Checks.
local name = kind .. ':' .. day
local list = string.sub(history_bytes, 1, -14) .. name
local stored = redis.call('HGET', history_bytes, name)
local removed = tonumber(string.match(stored or '', '^%d+ (%d+)$') or 0)
local length = redis.call('LLEN', list)
local from = math.min(math.max(first - removed, 0), length)
local reply, bytes, read = { 'OK', whole(removed + from), '0' }, 0, 0
local last = from + math.min(most, ENTRIES_MAX) - 1
for _, entry in ipairs(redis.call('LRANGE', list, whole(from), whole(last))) do
  read, bytes = read + 1, bytes + #entry
  reply[#reply + 1] = entry
  if bytes > BYTES_MAX then
    break
  end
end
reply[3] = whole(read)
reply[#reply + 1] = whole(length - from - read)
if from + read == length and kind == 'success' then
  for _, line in ipairs(redis.call('LRANGE', success, SUCCESSES, '-1')) do
    reply[#reply + 1] = line
  end
end
return reply
