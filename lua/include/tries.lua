-- tries: what a task has been through, `<failures>:<losses>:<misfits>`; absent until the first.

local function tries_of(stored)
  local failures, losses, misfits = string.match(stored or '', '^(%d+):(%d+):(%d+)$')
  return tonumber(failures or 0), tonumber(losses or 0), tonumber(misfits or 0)
end

local function tries_text(failures, losses, misfits)
  return whole(failures) .. ':' .. whole(losses) .. ':' .. whole(misfits)
end

-- The error history: one line an attempt, `<ms> <json>`, the last ten.
local ERRORS_MAX = 10

local function errors_with(stored, now, entry)
  local lines = {}
  for line in string.gmatch(stored or '', '[^\n]+') do
    lines[#lines + 1] = line
  end
  lines[#lines + 1] = whole(now) .. ' ' .. entry
  return table.concat(lines, '\n', math.max(1, #lines - ERRORS_MAX + 1))
end
