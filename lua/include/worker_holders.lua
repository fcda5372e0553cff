-- worker_holders: the workers that hold many tasks. Every worker is read once for all tasks.

-- Workers are read in pages. Those that hold tasks come first, because idle ones have longer leases
-- if there are many, so the first page often suffices.
local PAGE = 128
-- Up to this many fields, one command for fields and tokens costs less than two.
local FEW = 4

-- Returns the worker of each id that is held, and its token. For each worker, the function reads
-- either all tasks that the worker holds or all tasks that are still missing, whichever are fewer.
-- Most reads find nothing, so these loops call no other function.
local function holders_of(meta, workers, ids)
  local holders, tokens, wanted, open = {}, {}, {}, #ids
  for _, id in ipairs(ids) do
    wanted[id] = true
  end
  local function note(worker, id, token)
    if token and wanted[id] then
      holders[id], tokens[id], wanted[id] = worker, token, nil
      open = open - 1
    end
  end
  local base, left = key_of(meta, 'working', ''), nil
  local function look_in(worker)
    local working = base .. worker
    if open == 1 then
      local id = next(wanted)
      return note(worker, id, redis.call('HGET', working, id))
    end
    local size = redis.call('HLEN', working)
    if size > open then
      if not left or #left > open then
        left = {}
        for _, id in ipairs(ids) do
          left[#left + 1] = wanted[id] and id
        end
      end
      local held = redis.call('HMGET', working, unpack(left))
      for i = 1, #left do
        if held[i] then
          note(worker, left[i], held[i])
        end
      end
    elseif size > FEW then
      local held = redis.call('HKEYS', working)
      for i = 1, #held do
        if wanted[held[i]] then
          note(worker, held[i], redis.call('HGET', working, held[i]))
        end
      end
    elseif size > 1 then
      local held = redis.call('HGETALL', working)
      for i = 1, #held, 2 do
        if wanted[held[i]] then
          note(worker, held[i], held[i + 1])
        end
      end
    end
  end
  local first, page = 0, nil
  repeat
    page = open > 0 and redis.call('ZRANGE', workers, first, first + PAGE - 1) or {}
    for i = 1, #page do
      look_in(page[i])
      if open == 0 then
        break
      end
    end
    first = first + PAGE
  until open == 0 or #page < PAGE
  return holders, tokens
end
