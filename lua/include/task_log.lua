-- task_log: the log lines of tasks that leave. `logs` has the lines of each task, and `logged` the
-- ms when it was last added to, or when a purge found that the task is still there.

-- A log is kept this long after the success of its task. That of another task is kept with it.
local LOG_FOR_MS, OLD_LOGS_MAX = 86400000, 64

-- Returns what is done with logs that nobody added to for that time: those that go, and the tasks
-- that are still there, with their new times.
local function old_logs(tasks, logs, logged, now)
  local gone, kept = {}, {}
  local old = redis.call('ZRANGEBYSCORE', logged, '-inf', whole(now - LOG_FOR_MS), 'LIMIT', 0,
    OLD_LOGS_MAX)
  redis.call('HLEN', logs)
  local there = #old > 0 and redis.call('HMGET', tasks, unpack(old)) or {}
  for i, id in ipairs(old) do
    if there[i] then
      kept[#kept + 1], kept[#kept + 2] = whole(now), id
    else
      gone[#gone + 1] = id
    end
  end
  return gone, kept
end

local function drop_logs(logs, logged, ids)
  if #ids > 0 then
    redis.call('HDEL', logs, unpack(ids))
    redis.call('ZREM', logged, unpack(ids))
  end
end
