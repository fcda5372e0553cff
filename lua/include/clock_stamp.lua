-- clock_stamp: eight digits of base 36 for an instant.

local DIGITS = '0123456789abcdefghijklmnopqrstuvwxyz'

local function stamp_of(ms)
  local digits = {}
  for place = 8, 1, -1 do
    local digit = ms % 36
    digits[place] = string.sub(DIGITS, digit + 1, digit + 1)
    ms = (ms - digit) / 36
  end
  return table.concat(digits)
end
