-- task_born: when a task was born, as its id shows. Used only if priorities are in use.

local ID_DIGITS = '-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz'

-- Returns the ms in the first 48 bits of a version 7 uuid, by its submitter's clock; 0 if the text
-- is not an id, or if its uuid has another version, which contains no time.
local function born_ms(id)
  local ms = 0
  for place = 1, 9 do
    local digit = string.find(ID_DIGITS, string.sub(id, place, place), 1, true)
    if #id ~= 22 or not digit then
      return 0
    end
    ms = ms * 64 + digit - 1
  end
  -- Nine digits end within the version: their last two bits and the next two are 0111.
  local is_version_7 = ms % 4 == 1 and string.find(id, '^[k-z]', 10)
  return is_version_7 and math.floor(ms / 4) or 0
end
