-- annotate: adds lines to the logs of tasks, up to 64 at once
--
-- The lines of an attempt have numbers from 1 on, and the log of a task knows the last one that was
-- added under the latest fence. So a call that is sent again adds nothing, and an attempt whose
-- lease was lost adds nothing once the next one has. The last lines of a task are kept, and the
-- logs of the tasks that were added to last. A full store refuses the call.
--
-- KEYS   the naming block
-- ARGV   1 now override · then of each task: id, fence, number of the last line, how many lines,
--        and these with line breaks between them, each `<ms> <attempt> <text>`
-- REPLY  OK

local logs, logged = KEYS[1], KEYS[2]
local now, FIRST, WORDS = now_ms(ARGV[1]), 2, 5
local TASKS_MAX, LINES_MAX, BYTES_MAX, LOGS_MAX = 64, 100, 8192, 8192

-- Checks.
local ids = {}
for at = FIRST, math.min(#ARGV, FIRST + TASKS_MAX * WORDS) - WORDS + 1, WORDS do
  ids[#ids + 1] = ARGV[at]
end
local stored = redis.call('HMGET', logs, unpack(ids))
local changed, order, added = {}, {}, 0
-- Returns the text behind that many lines.
local function behind(text, lines)
  local from = 1
  for _ = 1, lines do
    from = string.find(text, '\n', from, true) + 1
  end
  return string.sub(text, from)
end
for i, id in ipairs(ids) do
  local at = FIRST + (i - 1) * WORDS
  local fence, last, count, text = ARGV[at + 1], ARGV[at + 2] + 0, ARGV[at + 3] + 0, ARGV[at + 4]
  local log = changed[id]
  if not log then
    local said, kept, of, number, lines =
      string.match(stored[i] or '', '^(%d+) (%d+) (%d+) (%d+)\n(.*)$')
    log = { said = (said or 0) + 0, kept = (kept or 0) + 0, fence = of or '0',
      number = (number or 0) + 0, lines = lines or '', is_new = not stored[i] }
  end
  if fence + 0 > log.fence + 0 then
    log.fence, log.number = fence, 0
  end
  local fresh = math.min(count, last - log.number)
  if fence == log.fence and fresh > 0 then
    log.lines = log.lines .. behind(text .. '\n', count - fresh)
    log.said, log.kept, log.number = log.said + last - log.number, log.kept + fresh, last
    local excess = math.max(log.kept - LINES_MAX, 0)
    log.lines, log.kept = behind(log.lines, excess), log.kept - excess
    while #log.lines > BYTES_MAX and log.kept > 1 do
      log.lines, log.kept = behind(log.lines, 1), log.kept - 1
    end
    if not changed[id] then
      changed[id], order[#order + 1] = log, id
      added = added + (log.is_new and 1 or 0)
    end
  end
end
local excess, oldest = redis.call('ZCARD', logged) + added - LOGS_MAX, {}
if excess > 0 then
  for _, id in ipairs(redis.call('ZRANGE', logged, '0', whole(excess + #order - 1))) do
    if not changed[id] and #oldest < excess then
      oldest[#oldest + 1] = id
    end
  end
end

-- Writes.
if #order == 0 then
  return 'OK'
end
local fields, scores = {}, {}
for i, id in ipairs(order) do
  local log = changed[id]
  local head = { whole(log.said), whole(log.kept), log.fence, whole(log.number) }
  fields[2 * i - 1], fields[2 * i] = id, table.concat(head, ' ') .. '\n' .. log.lines
  scores[2 * i - 1], scores[2 * i] = whole(now), id
end
redis.call('HSET', logs, unpack(fields))
redis.call('ZADD', logged, unpack(scores))
keep_logs(logs, logged)
if #oldest > 0 then
  redis.call('HDEL', logs, unpack(oldest))
  redis.call('ZREM', logged, unpack(oldest))
end
return 'OK'
