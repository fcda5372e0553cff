-- gather: the tasks that run together, `gather:<task>:<key>`: by the ms when they joined, -1 is the
-- task that leads the next run and has not collected the others yet. Those that failed or were lost
-- run apart from new ones, with those that were tried as often, in
-- `gather:<task>#<failures>:<losses>:<key>`. `gathers` has these keys by the ms when a run is due;
-- a key with tasks is in it.

-- A leader that does not collect within this time may have ended. Then a claim offers the next.
local LEAD_MS = 15000
-- The tasks of a run come back in several reports, and join within this time of the first. A claim
-- moves 128 of them, so a run that may have many has longer.
local BACK_MS = 100
local BACK_TASKS_PER_MS = 32

-- Returns with which tasks the task of this header runs, nil if it runs alone. `counts` are its
-- tries; nil or false for a task without tries.
local function gathering_of(base, header, counts)
  local wait, max, by =
    string.match(type(header.ga) == 'string' and header.ga or '', '^(%d+):(%d+):(.*)$')
  if not wait or type(header.t) ~= 'string' then
    return nil
  end
  local tried = string.match(counts or '', '^%d+:%d+')
  local apart = tried and tried ~= '0:0' and '#' .. tried or ''
  local name = header.t .. apart .. ':' .. by
  return { name = name, key = base .. 'gather:' .. name, wait = tonumber(wait),
    max = tonumber(max) }
end

-- Returns with which tasks one of this header waits, or whose run it leads, and its score; a score
-- of nil or false if it does neither. Older programs let tasks that failed wait with new ones.
local function gathered_at(base, header, id, counts)
  local new = gathering_of(base, header)
  if not new then
    return nil, nil
  end
  if counts == nil then
    counts = redis.call('HGET', base .. 'tries', id)
  end
  local run = gathering_of(base, header, counts)
  local at = redis.call('ZSCORE', run.key, id)
  local among_new = not at and run.name ~= new.name and redis.call('ZSCORE', new.key, id)
  if among_new then
    return new, among_new
  end
  return run, at
end

-- The header of a record that may gather. Only records with such fields state a version.
local function header_with_gather(record)
  local start = record and (string.sub(record, 1, 1) == '{' and 1 or 9)
  if start and string.sub(record, start, start + 4) == '{"v":' then
    local header = header_of(record)
    return type(header.ga) == 'string' and header or nil
  end
  return nil
end
