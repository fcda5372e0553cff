-- lane_header: the lane of a task, as its header states it.

-- The header of a record that may have a lane. Only records with such fields state a version.
local function header_with_lane(record)
  local start = record and (string.sub(record, 1, 1) == '{' and 1 or 9)
  if start and string.sub(record, start, start + 4) == '{"v":' then
    local header = header_of(record)
    return type(header.n) == 'string' and header or nil
  end
  return nil
end

local function width_of(header)
  return tonumber(header.nw) or 1
end
