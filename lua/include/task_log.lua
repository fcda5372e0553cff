-- task_log: the log lines of tasks that leave. `logs` has the lines of each task, and `logged` the
-- ms when it was last added to.

-- A log is kept this long after the success of its task. That of another task is kept with it.
local LOG_FOR_MS, OLD_LOGS_MAX = 86400000, 64
-- Both keys expire this long after the last change or purge. A worker of an earlier release that
-- removes an unused queue does not know them.
local LOGS_EXPIRE_MS = 181 * 86400000

-- Returns those of the logs that nobody added to for that time whose tasks are gone, of the logs
-- from this rank on; the rank from which the next call reads; and how many logs there are.
local function old_logs(tasks, logs, logged, now, from)
  local gone = {}
  local old = redis.call('ZRANGEBYSCORE', logged, '-inf', whole(now - LOG_FOR_MS), 'LIMIT',
    whole(from), OLD_LOGS_MAX)
  local all = redis.call('HLEN', logs)
  local there = #old > 0 and redis.call('HMGET', tasks, unpack(old)) or {}
  for i, id in ipairs(old) do
    if not there[i] then
      gone[#gone + 1] = id
    end
  end
  return gone, #old == OLD_LOGS_MAX and from + #old - #gone or 0, all
end

local function drop_logs(logs, logged, ids)
  if #ids > 0 then
    redis.call('HDEL', logs, unpack(ids))
    redis.call('ZREM', logged, unpack(ids))
  end
end

local function keep_logs(logs, logged)
  redis.call('PEXPIRE', logs, whole(LOGS_EXPIRE_MS))
  redis.call('PEXPIRE', logged, whole(LOGS_EXPIRE_MS))
end
