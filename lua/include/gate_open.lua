-- gate_open: an operator changes a gate. Its classes are looked at by the next claim.

-- Returns what `write_open` needs; reads the keys that it writes.
local function opening_of(meta, gate)
  local base = string.sub(meta, 1, -5)
  redis.call('ZCARD', base .. 'gates')
  redis.call('LLEN', base .. 'wake')
  local facts = redis.call('HMGET', meta, 'due', 'needs')
  return { meta = meta, base = base, gate = gate, due = facts[1],
    needs = tonumber(facts[2] or 1),
    is_awaited = redis.call('ZCARD', base .. 'gate:' .. gate) > 0 }
end

local function write_open(opening, now)
  if opening.is_awaited then
    redis.call('ZADD', opening.base .. 'gates', whole(now), opening.gate)
    due_at_latest(opening.meta, opening.base .. 'wake', opening.due, now)
  end
  wake_worker(opening.base .. 'wake')
end

local function write_needs(opening)
  if opening.needs < NEEDS_OF_LIMITS then
    redis.call('HSET', opening.meta, 'needs', NEEDS_OF_LIMITS)
  end
end
