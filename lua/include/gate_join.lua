-- gate_join: submitted tasks with limits. Those whose class waits already wait with it, so that a
-- claim need not move them.

-- Decides where the tasks of `found.limited` go, position → class, if nothing but a limit keeps
-- them from running. Returns what `write_gate_joins` writes.
local function join_gates(queue, found, ids)
  local base = string.sub(queue.meta, 1, -5)
  local joins = { base = base, classes = {}, named = {}, count = 0,
    limited = limited_of(queue.meta) }
  local is_any = redis.call('ZCARD', base .. 'waits') > 0
  for position, id in ipairs(ids) do
    local name, reason = found.limited[position], found.apart[position]
    joins.is_used = joins.is_used or name and reason ~= 'taken'
    if name and is_any and not reason then
      local class = joins.named[name]
      if not class then
        class = { key = base .. 'wait:' .. name, ids = {} }
        class.is_waiting = redis.call('ZCARD', class.key) > 0
        joins.named[name], joins.classes[#joins.classes + 1] = class, class
      end
      if class.is_waiting then
        class.ids[#class.ids + 1], found.apart[position] = id, 'blocked'
        joins.count = joins.count + 1
      end
    end
  end
  return joins
end

local function write_gate_joins(queue, joins, now)
  for _, class in ipairs(joins.classes) do
    local members = {}
    for _, id in ipairs(class.ids) do
      members[#members + 1], members[#members + 2] = whole(now), id
    end
    if #members > 0 then
      redis.call('ZADD', class.key, unpack(members))
    end
  end
  if joins.count > 0 then
    redis.call('HINCRBY', queue.meta, 'blocked', whole(joins.count))
  end
  if joins.is_used then
    write_limited(queue.meta, joins.limited)
  end
end
