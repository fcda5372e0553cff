-- gather_submit: the tasks of a submit that run together with others.

-- Reads `*<first>:<last>;<wait ms>:<max>:<task>:<key>`. The accepted tasks join the key, unless
-- they are due later or wait for others. They are `apart` from the ready list.
local function join_submitted(found, queue, option, ids, now)
  local first, last, wait, max, name = string.match(option, '^%*(%d+):(%d+);(%d+):(%d+):(.*)$')
  local joins = found.gathers
  if not joins then
    joins = gathers_of(queue.meta)
    joins.needs = tonumber(redis.call('HGET', queue.meta, 'needs') or 1)
    joins.hint = redis.call('HGET', queue.meta, 'due')
    redis.call('ZCARD', joins.gathers)
    found.gathers = joins
  end
  local run = { name = name, key = joins.base .. 'gather:' .. name, wait = tonumber(wait),
    max = tonumber(max) }
  for position = tonumber(first), tonumber(last) do
    local reason = found.apart[position]
    joins.is_used = joins.is_used or reason ~= 'taken'
    if (reason == nil or reason == 'ranked') and not found.unmet[position] then
      join_gather(joins, run, ids[position], now)
      found.apart[position] = 'blocked'
    end
  end
end

local function write_submitted(found, queue)
  local joins = found.gathers
  write_gathers(joins)
  if joins.is_used and joins.needs < NEEDS_OF_GATHER then
    redis.call('HSET', queue.meta, 'needs', NEEDS_OF_GATHER)
  end
  local first = first_gather(joins)
  if first then
    due_at_latest(queue.meta, queue.wake, joins.hint, first)
  end
end
