-- entry: what stands in `ready`. An id: in line since it was born. `<stamp>:<id>`: since then.

local ID_LENGTH = 22
local STAMPED_LENGTH = 9 + ID_LENGTH

-- The id of an entry; nil if it is none of ours.
local function entry_id(entry)
  if #entry == ID_LENGTH then
    return entry
  end
  return #entry == STAMPED_LENGTH and string.sub(entry, 10) or nil
end

-- Since when it is in line.
local function entry_since(entry)
  return #entry == ID_LENGTH and born_ms(entry) or tonumber(string.sub(entry, 1, 8), 36) or 0
end
