-- gate_join: submitted tasks with limits. Those whose class waits already wait with it, so that a
-- claim need not move them.

-- Decides where tasks with limits go, if nothing but a limit keeps them from running. The gates are
-- the options from `at` to before `past`; `asked` has the tasks with priorities, if there are
-- options. Returns what `write_gate_joins` writes.
local function join_gates(tasks, apart, asked, first_task, at, past)
  local base = string.sub(tasks, 1, -6)
  local joins = { base = base, meta = base .. 'meta', classes = {}, named = {}, count = 0 }
  joins.limited = limited_of(joins.meta)
  local is_any = joins.limited[3] and redis.call('ZCARD', base .. 'waits') > 0
  for option = at, past - 1 do
    local first, last, name = string.match(ARGV[option], '^%%(%d+):(%d+);(.*)$')
    local class = joins.named[name]
    if is_any and not class then
      class = { key = base .. 'wait:' .. name, ids = {} }
      class.is_waiting = redis.call('ZCARD', class.key) > 0
      joins.named[name], joins.classes[#joins.classes + 1] = class, class
    end
    for position = tonumber(first), tonumber(last) do
      local reason = apart[position]
      joins.is_used = joins.is_used or reason ~= 'taken'
      if class and class.is_waiting and (not reason or reason == 'ranked') then
        class.ids[#class.ids + 1] = { ARGV[first_task + 2 * position - 2],
          asked and asked.earlier[position] or 0 }
        apart[position] = 'blocked'
        joins.count = joins.count + 1
      end
    end
  end
  return joins
end

local function write_gate_joins(joins, now)
  for _, class in ipairs(joins.classes) do
    local members = {}
    for _, task in ipairs(class.ids) do
      members[#members + 1], members[#members + 2] = whole(now - task[2]), task[1]
    end
    if #members > 0 then
      redis.call('ZADD', class.key, unpack(members))
    end
  end
  if joins.count > 0 then
    redis.call('HINCRBY', joins.meta, 'blocked', whole(joins.count))
  end
  if joins.is_used then
    write_limited(joins.meta, joins.limited)
  end
end
