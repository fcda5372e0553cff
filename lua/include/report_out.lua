-- report_out: the word of a reply for a relay.

-- Returns the reply, which says whether effects for a relay were posted.
local function with_out(reply, flow)
  if #flow.targets > 0 then
    reply = reply == 'OK' and { 'OK' } or reply
    reply[#reply + 1] = 'out'
  end
  return reply
end
