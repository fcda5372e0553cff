-- ledger_lost: calls of a ledger's slot that were answered and that this history does not contain,
-- because of a failover or an older file. Only rare paths write them.

-- The maximum number of gaps. If there are more, the first two become one gap that covers both.
local LOST_MAX = 8

-- Returns the gaps of a slot plus a new one: `<last call before> <first call after>`….
local function lost_with(stored, before, after)
  local gaps = {}
  for number in string.gmatch(stored or '', '%d+') do
    gaps[#gaps + 1] = number
  end
  gaps[#gaps + 1], gaps[#gaps + 2] = whole(before), after
  if #gaps > 2 * LOST_MAX then
    table.remove(gaps, 2)
    table.remove(gaps, 2)
  end
  return table.concat(gaps, ' ')
end
