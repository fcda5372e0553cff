-- last_line: the last line of an error history.

-- The pattern begins at `^`: one that does not is tried at each byte, which costs the square of the
-- length of a line.
local function last_line(history)
  return string.match(history, '^.*\n(.*)$') or history
end
