-- clock: the one source of time, in ms since the Unix epoch.

-- Scripts use Redis' own clock, so that the clocks of clients and workers do not matter. Tests pass
-- an instant instead of ''.
local function now_ms(override)
  if override ~= '' then
    return tonumber(override)
  end
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Lua prints large numbers as 1.7e+12; keys and replies need every digit. A `long` has 64 bits;
-- workers check that when they start. Printing a long costs half as much as `%.0f`.
local function whole(number)
  return string.format('%d', number)
end
