-- history_death: what the history of a queue keeps of tasks that die: `<id> <ms> <task> <ms it
-- took> <JSON>`, the JSON being that of the last error, without its message if it is long.

local KEPT_ERROR_MAX, KEPT_FENCES_A_MS = 1024, 1024

-- A worker writes the reason first; quotes inside a message are escaped.
local function kept_error(history)
  local json = string.match(history or '', '^%d+ ([^\n]*)$')
    or string.match(history or '', '\n%d+ ([^\n]*)$') or ''
  if #json <= KEPT_ERROR_MAX then
    return json
  end
  local reason = string.match(json, '^{"reason":"([%a_]+)"')
  local rest = string.match(json, '^.*(,"attempt":%d+,"worker":"[^"]*".*)$')
  local is_short = reason and rest and #rest <= KEPT_ERROR_MAX
  return is_short and '{"reason":"' .. reason .. '"' .. rest or ''
end

-- Returns functions of this call: `note` a death, `read` all keys that `write` writes, and `write`.
-- The history is that of the queue; without one they do nothing.
local function deaths_of(meta, now)
  local base = string.sub(meta, 1, -5)
  local history = history_of(base, redis.call('HGET', meta, 'history'), now)
  -- `errors` is the error history of the task, nil if it has no new error. `working` is the key
  -- with its token, by whose fence the attempt began; nil without one.
  local function note(id, errors, working)
    local task = history and header_of(redis.call('HGET', base .. 'tasks', id)).t
    if type(task) ~= 'string' or not string.find(task, '^[%w._-]+$')
      or not is_in_history(history, task) then
      return
    end
    local token = working and redis.call('HGET', working, id)
    local fence = tonumber(string.match(token or '', ':(%d+)$') or '')
    local took = fence and math.max(0, now - math.floor(fence / KEPT_FENCES_A_MS)) or 0
    add_to_history(history, 'dead', now, id .. ' ' .. whole(now) .. ' ' .. task .. ' '
      .. whole(took) .. ' ' .. kept_error(errors))
  end
  local function read()
    if history and #history.lists > 0 then
      trim_history(history)
    else
      history = nil
    end
  end
  local function write()
    if history then
      write_history(history)
    end
  end
  return { note = note, read = read, write = write }
end
