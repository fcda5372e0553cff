-- gate_wait: the tasks that wait for a gate. `wait:<class>` has the tasks of a class by rank, and
-- `waits` the classes by the ms since when tasks wait. A class waits at the one of its gates that
-- opens last: `gate:<gate>` has the classes by the rank of their first tasks, `gates` the gates by
-- the ms at which they may next let a task through. A gate that opens by another call, because it
-- is paused or all its permits are taken, is not in `gates`. `due` in `meta` covers `gates`, too.

local function class_in(gates, name)
  gates.classes, gates.in_order = gates.classes or {}, gates.in_order or {}
  local class = gates.classes[name]
  if not class then
    local key = gates.base .. 'wait:' .. name
    class = { name = name, key = key, left = redis.call('ZCARD', key), members = {}, gone = {},
      joined = {} }
    class.was_empty = class.left == 0
    gates.classes[name] = class
    gates.in_order[#gates.in_order + 1] = class
  end
  return class
end

local function tickets_of(gates, gate)
  gate.tickets = gate.tickets or redis.call('ZCARD', gates.base .. 'gate:' .. gate.name)
  return gate.tickets
end

-- Adds so many tasks of a class to those that were read.
local function pull_class(gates, gate, name, each, pulled)
  local class = class_in(gates, name)
  class.at = gate
  class.members = redis.call('ZRANGE', class.key, '0', whole(each), 'WITHSCORES')
  for j = 1, math.min(2 * each, #class.members), 2 do
    pulled[#pulled + 1] = { tonumber(class.members[j + 1]), class.members[j], class, #pulled }
  end
end

local function sort_pulled(pulled)
  table.sort(pulled, function(a, b)
    return a[1] < b[1] or a[1] == b[1] and a[4] < b[4]
  end)
  return pulled
end

-- Returns the first tasks of the gates that may be open, by rank: `{ rank, id, class }`.
local function pull(gates, want)
  local pulled = {}
  local names = redis.call('ZRANGEBYSCORE', gates.base .. 'gates', '-inf', whole(gates.now),
    'WITHSCORES', 'LIMIT', '0', whole(want + 1))
  for i = 1, #names, 2 do
    if #pulled >= want then
      gates.left_at = tonumber(names[i + 1])
      break
    end
    local name = names[i]
    local gate = gate_in(gates, name)
    gate.is_looked, gate.tickets = true, tickets_of(gates, gate)
    gate.opened = tonumber(names[i + 1])
    local classes = redis.call('ZRANGE', gates.base .. 'gate:' .. name, '0',
      whole(want - #pulled - 1))
    local each = math.ceil((want - #pulled) / math.max(#classes, 1))
    gate.read = #classes
    for _, class_name in ipairs(classes) do
      pull_class(gates, gate, class_name, each, pulled)
    end
    gates.is_cut = gates.is_cut or gate.read < gate.tickets
  end
  return sort_pulled(pulled)
end

-- Returns the first tasks of classes that `pull` did not read. Its tasks may all wait for another
-- gate. A gate that has refused one of them lets no other start.
local function pull_more(gates, most)
  local pulled = {}
  for _, gate in ipairs({ unpack(gates.used) }) do
    if gate.is_looked and not gate.opens and gate.read < gate.tickets and #pulled < most then
      local names = redis.call('ZRANGE', gates.base .. 'gate:' .. gate.name, whole(gate.read),
        whole(gate.read + most - #pulled - 1))
      for _, name in ipairs(names) do
        pull_class(gates, gate, name, 1, pulled)
      end
    end
  end
  return sort_pulled(pulled)
end

-- A task of the class is refused: the class waits at that gate. If the gate lacks tokens for it,
-- the gate keeps those that come until then for this task.
local function note_refusal(class, gate, opens, lacks_tokens, rank)
  class.waits_at, gate.opens = gate, math.min(gate.opens or math.huge, opens)
  if lacks_tokens and not gate.kept_until then
    gate.kept_until, gate.kept_since = opens, rank
  end
end

-- Returns until when a gate keeps its tokens for the oldest task that waits there, and the rank of
-- that task; nil if it keeps none. A gate may be open although this call has not looked at it.
local function line_at(gates, gate)
  if gate.kept_until or gate.is_looked or not gates.is_any_waiting then
    -- What comes later in this call is younger. The tasks that this call has read from a gate come
    -- before it.
    return gate.kept_until, -math.huge
  elseif not gate.line then
    local opens = redis.call('ZSCORE', gates.base .. 'gates', gate.name)
    local first = opens
      and redis.call('ZRANGE', gates.base .. 'gate:' .. gate.name, '0', '0', 'WITHSCORES') or {}
    gate.line = { first[2] and math.max(tonumber(opens), gates.now), tonumber(first[2]) }
  end
  return gate.line[1], gate.line[2]
end

-- Lets a task wait that was in the ready list.
local function park(class, id, rank)
  class.left = class.left + 1
  class.joined[#class.joined + 1], class.joined[#class.joined + 2] = whole(rank), id
end

-- The rank of the first task that waits after this call.
local function head_of(class)
  local head = tonumber(class.members[2 * #class.gone + 2] or math.huge)
  for i = 1, #class.joined, 2 do
    head = math.min(head, tonumber(class.joined[i]))
  end
  return head
end

-- Decides where classes wait from now on, and when gates open. Reads what `write_waits` writes. If
-- the queue's own gate has stopped the claim, a gate that let no task through keeps its time, so
-- that the next claim looks at it before those that did. Returns the ms at which the next of these
-- gates may open, nil if none does.
local function settle(gates)
  local next_open, blocked = nil, 0
  for _, class in ipairs(gates.in_order or {}) do
    local before = class.at
    if before and #class.gone > 0 then
      before.is_used = true
    end
    local after = class.left > 0 and (class.waits_at or before) or nil
    blocked = blocked + #class.joined / 2 - #class.gone
    if before and (before ~= after) then
      before.out = before.out or {}
      before.out[#before.out + 1] = class.name
      before.tickets = before.tickets - 1
    end
    if after and (before or class.was_empty) then
      local head = head_of(class)
      after.into = after.into or {}
      after.into[#after.into + 1], after.into[#after.into + 2] = whole(head), class.name
      after.tickets = tickets_of(gates, after) + (before == after and 0 or 1)
      -- The claim did not read all of its tasks that are older than the one with kept tokens.
      after.has_older = after.has_older or not class.waits_at
        and head < (after.kept_since or -math.huge)
    end
    class.is_calm = class.left == 0 and not class.was_empty
  end
  for _, gate in ipairs(gates.used) do
    if gate.is_looked or gate.into then
      local keeps_time = gates.is_stopped and not gate.is_used
      gate.at = not gate.has_older and gate.opens or keeps_time and gate.opened or gates.now
      if not gate.is_looked and gate.tickets > #gate.into / 2 then
        -- Other classes wait there, and it may open earlier for them.
        local known = redis.call('ZSCORE', gates.base .. 'gates', gate.name)
        gate.at = math.min(gate.at, tonumber(known or math.huge))
      end
      if gate.tickets == 0 or gate.at == math.huge then
        gate.at = nil
      else
        next_open = math.min(next_open or gate.at, gate.at)
      end
    end
  end
  gates.blocked = blocked
  if gates.in_order then
    redis.call('ZCARD', gates.base .. 'waits')
    redis.call('HGET', gates.base .. 'meta', 'blocked')
  end
  return next_open
end

-- Nothing is removed from a key that is written later.
local function write_waits(gates)
  local base, waits, calm, open, closed = gates.base, {}, {}, {}, {}
  for _, class in ipairs(gates.in_order or {}) do
    if #class.joined > 0 then
      redis.call('ZADD', class.key, unpack(class.joined))
    end
    if #class.gone > 0 then
      redis.call('ZREM', class.key, unpack(class.gone))
    end
    if class.is_calm then
      calm[#calm + 1] = class.name
    elseif class.was_empty and class.left > 0 then
      waits[#waits + 1], waits[#waits + 2] = whole(gates.now), class.name
    end
  end
  for _, gate in ipairs(gates.used) do
    if gate.into then
      redis.call('ZADD', base .. 'gate:' .. gate.name, unpack(gate.into))
    end
    if gate.out then
      redis.call('ZREM', base .. 'gate:' .. gate.name, unpack(gate.out))
    end
    if gate.at then
      open[#open + 1], open[#open + 2] = whole(gate.at), gate.name
    elseif gate.is_looked or gate.into then
      closed[#closed + 1] = gate.name
    end
  end
  for _, change in ipairs({ { 'ZADD', 'waits', waits }, { 'ZREM', 'waits', calm },
    { 'ZADD', 'gates', open }, { 'ZREM', 'gates', closed } }) do
    if #change[3] > 0 then
      redis.call(change[1], base .. change[2], unpack(change[3]))
    end
  end
  if gates.blocked ~= 0 then
    redis.call('HINCRBY', base .. 'meta', 'blocked', whole(gates.blocked))
  end
end
