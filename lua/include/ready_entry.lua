-- ready_entry: what stands in `ready`. An id: in line since it was born, and never tried.
-- `<stamp>:<id>`: in line since then.

local ID_LENGTH = 22
local STAMPED_LENGTH = 9 + ID_LENGTH

-- The id of an entry; nil if it is none of ours.
local function entry_id(entry)
  if #entry == ID_LENGTH then
    return entry
  end
  return #entry == STAMPED_LENGTH and string.sub(entry, 10) or nil
end
