-- clock_second: enough of the time to compare two clocks where they agree.

-- The second of Redis' clock, as text.
local function now_second(override)
  return override == '' and redis.call('TIME')[1] or string.sub(override, 1, -4)
end
