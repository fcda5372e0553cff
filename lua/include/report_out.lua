-- report_out: the word of a reply for a relay.

-- Returns the reply, which says whether effects for a relay were posted, or were left before by a
-- call whose answer may be lost.
local function with_out(reply, flow)
  if #flow.targets > 0 or flow.is_left then
    reply = reply == 'OK' and { 'OK' } or reply
    reply[#reply + 1] = 'out'
  end
  return reply
end
