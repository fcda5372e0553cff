-- gate_class: the gates of a task, as its header states them: `task:<name>`, `lane:<key>` and
-- `limit:<name>`. The tasks with the same gates are one class, and wait in one key.

-- Returns the names of the gates, and the limits that the task has brought, by gate.
local function gates_of_header(header)
  local names, brought = {}, {}
  if type(header.t) == 'string' then
    names[1] = 'task:' .. header.t
  end
  if type(header.n) == 'string' then
    names[#names + 1] = 'lane:' .. header.n
  end
  for _, text in ipairs(type(header.g) == 'table' and header.g or {}) do
    local interval, burst, most, name = string.match(text, '^(%d+):(%d+):(%d+):(.+)$')
    if name and not brought[name] then
      brought[name] = { tonumber(interval), tonumber(burst), tonumber(most) }
      if name ~= names[1] and name ~= names[2] then
        names[#names + 1] = name
      end
    end
  end
  return names, brought
end

-- No name has a line break.
local function class_of(names)
  return table.concat(names, '\n')
end
