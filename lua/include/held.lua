-- held: which reports of a call still hold their task.

-- The positions in ARGV of the reports, `width` arguments each from `first`, whose token is the
-- task's; and a reply that names the others. One that stands in a call twice is ended once.
local function still_held(working, first, width, count)
  local asked = {}
  for i = 1, count do
    asked[i] = ARGV[first + width * (i - 1)]
  end
  local tokens = redis.call('HMGET', working, unpack(asked))
  local held, reply, seen = {}, { 'OK' }, {}
  for i = 1, count do
    local at = first + width * (i - 1)
    if tokens[i] == ARGV[at + 1] and not seen[asked[i]] then
      seen[asked[i]] = true
      held[#held + 1] = at
    else
      reply[#reply + 1] = whole(i)
    end
  end
  return held, reply
end
