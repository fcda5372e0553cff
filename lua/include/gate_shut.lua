-- gate_shut: a report shuts a gate for a while, because what the tasks of that gate use asks for a
-- pause.

-- A reason lives at least this long. It is shown only while the gate is shut.
local REASON_MS_MIN = 60000

-- Adds the gate that a report shuts, with the ms until when. A scope is `queue`, `task` or `limit`,
-- or `lane` if the task has one; a task without a named limit shuts its own gate. `why` has the
-- task and its reason, for people who look at the pause: `shut:<gate>` expires after it.
local function add_shut(shuts, meta, record, scope, wait, why, now)
  local header = header_of(record)
  local name = scope == 'queue' and '' or 'task:' .. tostring(header.t)
  local names = gates_of_header(header)
  for _, other in ipairs(names) do
    if scope ~= 'queue' and string.sub(other, 1, #scope + 1) == scope .. ':' then
      name = other
    end
  end
  shuts.untils, shuts.whys, shuts.now = shuts.untils or {}, shuts.whys or {}, now
  shuts.untils[name] = math.max(shuts.untils[name] or 0, now + wait)
  shuts.key = string.sub(meta, 1, -5) .. 'shut'
  shuts.limited = shuts.limited or limited_of(meta)
  local before = redis.call('ZSCORE', shuts.key, name)
  if before then
    shuts.untils[name] = math.max(shuts.untils[name],
      before == 'inf' and math.huge or tonumber(before))
  end
  if shuts.untils[name] == now + wait then
    shuts.whys[name] = whole(now) .. ' ' .. why
  end
end

local function write_shuts(shuts, meta)
  for name, ends in pairs(shuts.untils) do
    redis.call('ZADD', shuts.key, ends == math.huge and 'inf' or whole(ends), name)
  end
  for name, why in pairs(shuts.whys) do
    local left = math.max(shuts.untils[name] - shuts.now, REASON_MS_MIN)
    redis.call('SET', shuts.key .. ':' .. name, why, 'PX', whole(left))
  end
  write_limited(meta, shuts.limited)
end
