-- gate_refund: tokens of tasks that expire, or that a worker gives back before they begin. Without
-- them, a task that must run alone would use one each time that it is claimed, and never start, and
-- neither would those behind it.

-- Returns what `write_refunds` writes, nil if these records use no tokens. Reads every key that it
-- writes. What a gate allows now counts, so a refund is at most a whole burst.
local function refunds_of(meta, records, now)
  local base = string.sub(meta, 1, -5)
  local gates, back = gates_of(base, now, false), { base = base, meta = meta, named = {} }
  for _, record in ipairs(records) do
    for _, way in ipairs(pass_of(gates, record) or {}) do
      local name, one = way.gate.name, back.named[way.gate.name]
      if way.interval > 0 and one == nil then
        local full = redis.call('ZSCORE', base .. 'spent', name)
        one = full and { name = name, full_at = tonumber(full) } or false
        back.named[name], back[#back + 1] = one, one or nil
      end
      if way.interval > 0 and one then
        one.full_at = math.max(one.full_at - way.cost * way.interval, 0)
      end
    end
  end
  for _, one in ipairs(back) do
    local opens = redis.call('ZSCORE', base .. 'gates', one.name)
    one.opens = opens and tonumber(opens) > now
  end
  if #back > 0 then
    redis.call('LLEN', base .. 'wake')
    back.hint = redis.call('HGET', meta, 'due')
  end
  return #back > 0 and back or nil
end

-- The next claim looks again at the gates that were to open later.
local function write_refunds(back, now)
  for _, one in ipairs(back) do
    redis.call('ZADD', back.base .. 'spent', whole(one.full_at), one.name)
    if one.opens then
      redis.call('ZADD', back.base .. 'gates', whole(now), one.name)
      due_at_latest(back.meta, back.base .. 'wake', back.hint, now)
    end
  end
  wake_worker(back.base .. 'wake')
end
