-- due_again: when a task was due that was cancelled before. `tries` keeps it behind the counts, or
-- alone: `@<ms>`. A requeue removes it. An earlier release reads the counts before it, and no more.

local function with_due(stored, due)
  return (stored or '') .. '@' .. due
end

-- Returns the counts, nil if there are none, and when the task was due, nil if it was.
local function without_due(stored)
  local counts, due = string.match(stored or '', '^(.-)@(%d+)$')
  if not due then
    return stored or nil, nil
  end
  return counts ~= '' and counts or nil, tonumber(due)
end
