-- ready_entry: the entries of `ready`. A plain id means a task that is ready since its birth and
-- was never tried. `<stamp>:<id>` means a task that is ready since the stamp.

local ID_LENGTH = 22
local STAMPED_LENGTH = 9 + ID_LENGTH

-- Returns the id of an entry; nil if it is not an entry of Optimus.
local function entry_id(entry)
  if #entry == ID_LENGTH then
    return entry
  end
  return #entry == STAMPED_LENGTH and string.sub(entry, 10) or nil
end

-- Returns the ms of the stamp of an entry; nil if it has none. The stamp of a task that returned to
-- the list is 0 if its id has no time.
local function entry_since(entry)
  local ms = #entry == STAMPED_LENGTH and tonumber(string.sub(entry, 1, 8), 36) or 0
  return ms > 0 and ms or nil
end
