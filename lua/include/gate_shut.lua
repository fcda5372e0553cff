-- gate_shut: a report shuts a gate for a while, because what the tasks of that gate use asks for a
-- pause.

-- Returns the gates that the reports of a call shut, with the ms until when. A scope is `queue`,
-- `task`, `lane` or `limit`; a task without a lane or a named limit shuts its own gate.
local function add_shut(shuts, meta, record, scope, wait, now)
  local header = header_of(record)
  local name = scope == 'queue' and '' or 'task:' .. tostring(header.t)
  local names = gates_of_header(header)
  for _, other in ipairs(names) do
    if scope ~= 'queue' and string.sub(other, 1, #scope + 1) == scope .. ':' then
      name = other
    end
  end
  shuts.untils = shuts.untils or {}
  shuts.untils[name] = math.max(shuts.untils[name] or 0, now + wait)
  shuts.key = string.sub(meta, 1, -5) .. 'shut'
  shuts.limited = shuts.limited or limited_of(meta)
  local before = redis.call('ZSCORE', shuts.key, name)
  if before then
    shuts.untils[name] = math.max(shuts.untils[name],
      before == 'inf' and math.huge or tonumber(before))
  end
end

local function write_shuts(shuts, meta)
  for name, ends in pairs(shuts.untils) do
    redis.call('ZADD', shuts.key, ends == math.huge and 'inf' or whole(ends), name)
  end
  write_limited(meta, shuts.limited)
end
