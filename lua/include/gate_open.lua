-- gate_open: an operator changes a gate. The next claim looks at its classes.

-- Returns what `write_open` needs; reads the keys that it writes.
local function opening_of(meta, gate)
  local base = string.sub(meta, 1, -5)
  redis.call('ZCARD', base .. 'gates')
  redis.call('LLEN', base .. 'wake')
  return { meta = meta, base = base, gate = gate, due = redis.call('HGET', meta, 'due'),
    limited = limited_of(meta), is_awaited = redis.call('ZCARD', base .. 'gate:' .. gate) > 0 }
end

local function write_open(opening, now)
  if opening.is_awaited then
    redis.call('ZADD', opening.base .. 'gates', whole(now), opening.gate)
    due_at_latest(opening.meta, opening.base .. 'wake', opening.due, now)
  end
  wake_worker(opening.base .. 'wake')
end
