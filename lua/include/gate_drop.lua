-- gate_drop: tasks without a worker that no longer wait for a gate.

local function drops_of(meta)
  local base = string.sub(meta, 1, -5)
  return { base = base, meta = meta, gone = {}, classes = {}, named = {}, count = 0,
    is_any = redis.call('ZCARD', base .. 'waits') > 0 }
end

-- `gone` has the tasks that waited.
local function drop_from_gates(drops, header, id)
  if not drops.is_any then
    return
  end
  local names = gates_of_header(header)
  local name = class_of(names)
  local key = drops.base .. 'wait:' .. name
  if redis.call('ZSCORE', key, id) then
    local class = drops.named[name]
    if not class then
      class = { key = key, name = name, gates = names, out = {} }
      drops.named[name], drops.classes[#drops.classes + 1] = class, class
    end
    class.out[#class.out + 1], drops.gone[id] = id, true
    drops.count = drops.count + 1
  end
end

-- A class without tasks leaves the gate at which it waited. If the class was the first one there,
-- the next claim looks at that gate: it may have kept its tokens for the task that is gone.
local function read_drops(drops, now)
  drops.calm, drops.gates, drops.closed, drops.opened, drops.now = {}, {}, {}, {}, now
  local left, opens = {}, {}
  for _, class in ipairs(drops.classes) do
    local is_calm = redis.call('ZCARD', class.key) == #class.out
    drops.calm[#drops.calm + 1] = is_calm and class.name or nil
    for _, gate in ipairs(class.gates) do
      local key = drops.base .. 'gate:' .. gate
      local place = redis.call('ZRANK', key, class.name)
      if place and is_calm then
        left[gate] = (left[gate] or redis.call('ZCARD', key)) - 1
        drops.gates[#drops.gates + 1] = { key = key, class = class.name }
        if left[gate] == 0 then
          drops.closed[#drops.closed + 1] = gate
        end
      end
      if place == 0 then
        opens[gate] = tonumber(redis.call('ZSCORE', drops.base .. 'gates', gate) or 0)
      end
    end
  end
  for gate, at in pairs(opens) do
    if at > now and left[gate] ~= 0 then
      drops.opened[#drops.opened + 1], drops.opened[#drops.opened + 2] = whole(now), gate
    end
  end
  if drops.count > 0 then
    redis.call('ZCARD', drops.base .. 'gates')
    redis.call('LLEN', drops.base .. 'wake')
    drops.due = redis.call('HMGET', drops.meta, 'blocked', 'due')[2]
  end
end

local function write_drops(drops)
  for _, class in ipairs(drops.classes) do
    redis.call('ZREM', class.key, unpack(class.out))
  end
  for _, gate in ipairs(drops.gates) do
    redis.call('ZREM', gate.key, gate.class)
  end
  if #drops.calm > 0 then
    redis.call('ZREM', drops.base .. 'waits', unpack(drops.calm))
  end
  if #drops.opened > 0 then
    redis.call('ZADD', drops.base .. 'gates', unpack(drops.opened))
    due_at_latest(drops.meta, drops.base .. 'wake', drops.due, drops.now)
  end
  if #drops.closed > 0 then
    redis.call('ZREM', drops.base .. 'gates', unpack(drops.closed))
  end
  if drops.count > 0 then
    redis.call('HINCRBY', drops.meta, 'blocked', whole(-drops.count))
  end
end
