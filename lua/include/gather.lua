-- gather: the tasks that run together, `gather:<task>:<key>`: by the ms when they joined, -1 is the
-- task that leads the next run and has not collected the others yet. `gathers` has these keys by
-- the ms when a run is due; a key with tasks is in it.

-- A leader that does not collect within this time may have ended. Then a claim offers the next.
local LEAD_MS = 15000
-- Tasks that come back join within this time, so that those of one run join together.
local BACK_MS = 1000

-- Returns which tasks the task of this header runs with, nil if it runs alone.
local function gathering_of(base, header)
  local wait, max, by =
    string.match(type(header.ga) == 'string' and header.ga or '', '^(%d+):(%d+):(.*)$')
  if not wait or type(header.t) ~= 'string' then
    return nil
  end
  local name = header.t .. ':' .. by
  return { name = name, key = base .. 'gather:' .. name, wait = tonumber(wait),
    max = tonumber(max) }
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
