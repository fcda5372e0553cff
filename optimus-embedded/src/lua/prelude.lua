-- prelude: pcall and xpcall as scripts know them.
--
-- The host raises errors as objects of its own; a script must only ever see what Redis would show.
local pcall, xpcall, to_caught, to_handled = pcall, xpcall, ...

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

return script_pcall, script_xpcall
