-- clock_second: the part of the time that is enough to compare two clocks that agree.

-- Returns the second of Redis' clock, as text.
local function now_second(override)
  return override == '' and redis.call('TIME')[1] or string.sub(override, 1, -4)
end
