-- limited: that a queue has limits. `limited` in `meta` is there from the first limit, pause of a
-- gate or permit outside tasks on. Without it, no claim looks at gates.

-- Returns what `write_limited` needs, and then how many tasks wait for lanes and limits.
local function limited_of(meta)
  return redis.call('HMGET', meta, 'needs', 'limited', 'blocked')
end

local function write_limited(meta, facts)
  if tonumber(facts[1] or 1) < NEEDS_OF_LIMITS then
    redis.call('HSET', meta, 'needs', NEEDS_OF_LIMITS)
  end
  if not facts[2] then
    redis.call('HSET', meta, 'limited', '1')
  end
end
