-- task_tries: the counts of a task's attempts, `<failures>:<losses>:<misfits>`; absent until the
-- first one. Misfits count since the last start, because that start proves that some worker knows
-- the task. A fourth number exists if the record does not state by when the task must be started:
-- that instant in ms after a requeue, 0 once it was started.

local function tries_of(stored)
  local failures, losses, misfits, start_by =
    string.match(stored or '', '^(%d+):(%d+):(%d+):?(%d*)$')
  return tonumber(failures or 0), tonumber(losses or 0), tonumber(misfits or 0), start_by or ''
end

-- `start_by` as text, '' if the record states it; unused once there is a failure or a loss.
local function tries_text(failures, losses, misfits, start_by)
  local counts = whole(failures) .. ':' .. whole(losses) .. ':' .. whole(misfits)
  return (start_by or '') == '' and counts or counts .. ':' .. start_by
end

-- Returns the counts plus these numbers, or `first` if there are no counts yet. `kept` is 0 if the
-- misfits no longer count because the task was started; else 1.
local function tries_after(stored, first, failed, lost, kept)
  if not stored then
    return first
  end
  local failures, losses, misfits = tries_of(stored)
  return whole(failures + failed) .. ':' .. whole(losses + lost) .. ':'
    .. whole(misfits * kept)
end

-- Returns whether one of these tasks has counts. Only such a task has an error history.
local function is_any(counts)
  for i = 1, #counts do
    if counts[i] then
      return true
    end
  end
  return false
end

-- The error history: the last ten attempts, one line `<ms> <json>` for each.
local ERRORS_MAX = 10

local function errors_with(stored, now_text, entry)
  local line = now_text .. ' ' .. entry
  if not stored then
    return line
  end
  local lines = {}
  for earlier in string.gmatch(stored, '[^\n]+') do
    lines[#lines + 1] = earlier
  end
  lines[#lines + 1] = line
  return table.concat(lines, '\n', math.max(1, #lines - ERRORS_MAX + 1))
end
