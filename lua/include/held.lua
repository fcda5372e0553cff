-- held: what a worker holds, `working:<worker>`: id → token, and the field of `last_claim`.

-- How many tasks it holds.
local function count_held(working)
  return math.max(0, redis.call('HLEN', working) - 1)
end

-- Whether it holds one task, claimed to run alone: then nothing else can have killed the worker.
local function is_alone(working)
  local last = redis.call('HGET', working, LAST_CLAIM)
  return last and string.find(last, ALONE, 1, true) and count_held(working) == 1
end

-- What it holds as id, token, ….
local function all_held(working)
  local pairs_held = redis.call('HGETALL', working)
  for i = 1, #pairs_held, 2 do
    if pairs_held[i] == LAST_CLAIM then
      table.remove(pairs_held, i + 1)
      table.remove(pairs_held, i)
      break
    end
  end
  return pairs_held
end

-- Up to `limit` ids of what it holds, in no order.
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
