-- prelude: pcall, xpcall and string.format, as in the scripts of Redis.
--
-- The host raises its own error objects; a script must only see what Redis would show.
local pcall, xpcall, format, modf = pcall, xpcall, string.format, math.modf
local to_caught, to_handled = ...

local function caught(ok, ...)
  if ok then return true, ... end
  return false, to_caught((...))
end

local function script_pcall(...)
  return caught(pcall(...))
end

local function script_xpcall(body, handler)
  return xpcall(body, function(failure) return handler(to_handled(failure)) end)
end

-- `%d` uses a `long`, which has 64 bits where Redis runs, and 32 bits on some hosts of this crate.
local function script_format(pattern, ...)
  if pattern == '%d' then
    return format('%.0f', (modf((...))))
  end
  return format(pattern, ...)
end

return script_pcall, script_xpcall, script_format
