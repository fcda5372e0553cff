-- gather_again: tasks that come back from a worker.

-- Returns whether the task of this header gathers again. A task that the next lost worker would end
-- runs alone, so that it ends no others.
local function gathers_again(header, losses)
  local most = tonumber(header.m) or 3
  return type(header.ga) == 'string' and (losses == 0 or losses + 1 < most)
end
