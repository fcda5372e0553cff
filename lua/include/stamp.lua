-- stamp: eight digits of base 36 for an instant; entries of `ready` are `<stamp>:<id>`.

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

local function stamp_ms(stamp)
  return tonumber(stamp, 36)
end

local function entry_stamp(entry)
  return string.sub(entry, 1, 8)
end

local function entry_id(entry)
  return string.sub(entry, 10)
end

local STAMP_PATTERN = '^' .. string.rep('[%da-z]', 8)

-- The stamp that entries of each task must carry: the one of its last requeue, else that of its
-- submit, which opens its record. A damaged record must not put a damaged entry in line.
local function stamps_of(restamp, ids, records)
  local stamps = redis.call('HMGET', restamp, unpack(ids))
  for i = 1, #ids do
    stamps[i] = stamps[i] or string.match(records[i] or '', STAMP_PATTERN) or '00000000'
  end
  return stamps
end
