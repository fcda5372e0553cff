-- after_ref: the prerequisites that a header lists.

local MARKS = '0123456789abcdefghijklmnopqrstuv'

-- Returns the queue and the rest of the prerequisite with that mark, as a header lists it. A
-- prerequisite whose result is taken has a mark of its own, and is the first one.
local function ref_of(header, mark)
  local refs = type(header.a) == 'table' and header.a or {}
  local ref = refs[string.find(MARKS, mark, 1, true) or 1]
  local queue, name = string.match(type(ref) == 'string' and ref or '', '^([^/]*)/(.*)$')
  return queue or '', name or ''
end
