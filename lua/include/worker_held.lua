-- worker_held: the tasks that a worker holds, in `working:<worker>`: id → token, and the field of
-- `last_claim`.

-- Returns the number of tasks that the worker holds.
local function count_held(working)
  return math.max(0, redis.call('HLEN', working) - 1)
end

-- Returns whether the worker holds only one task, claimed to run alone. Then no other task can have
-- killed the worker.
local function is_alone(working)
  local last = redis.call('HGET', working, LAST_CLAIM)
  return last and string.find(last, ALONE, 1, true) and count_held(working) == 1
end

-- Returns whether this loss, the last one of so many, marks its task Dead. `alone` is whether the
-- worker held nothing else, so that no other task is blamed.
local LOSSES_MAX = 3
local function dies_of_loss(header, losses, alone)
  return header.l == 'dead' or alone and losses >= (tonumber(header.m) or LOSSES_MAX)
end

-- Returns the tasks that the worker holds, as id, token, ….
local function all_held(working)
  local pairs_held = redis.call('HGETALL', working)
  local size = #pairs_held
  for i = 1, size, 2 do
    if pairs_held[i] == LAST_CLAIM then
      pairs_held[i], pairs_held[i + 1] = pairs_held[size - 1], pairs_held[size]
      pairs_held[size - 1], pairs_held[size] = nil, nil
      break
    end
  end
  return pairs_held
end

-- Returns the tasks of a worker that were asked to stop. The smaller of the two sets is looked up
-- in the other.
local function asked_to_stop(cancel, working, held)
  local asked = #held > 0 and redis.call('HLEN', cancel) or 0
  if asked == 0 then
    return {}
  end
  local ids, other = {}, cancel
  if 2 * asked < #held then
    ids, other = redis.call('HKEYS', cancel), working
  else
    for i = 1, #held, 2 do
      ids[#ids + 1] = held[i]
    end
  end
  local stopping = {}
  for first = 1, #ids, 4000 do
    local last = math.min(first + 3999, #ids)
    local found = redis.call('HMGET', other, unpack(ids, first, last))
    for i = first, last do
      if found[i - first + 1] then
        stopping[#stopping + 1] = ids[i]
      end
    end
  end
  return stopping
end

-- Returns up to `limit` ids of tasks that the worker holds, in no order.
local function some_held(working, limit)
  local ids = redis.call('HRANDFIELD', working, limit + 1)
  for i, id in ipairs(ids) do
    if id == LAST_CLAIM then
      table.remove(ids, i)
      return ids
    end
  end
  ids[limit + 1] = nil
  return ids
end
