-- after_cycle: whether a task would wait for itself, through tasks of its queue.

-- A search looks at most at this many tasks. A longer cycle is not found.
local WALK_MAX = 64
-- After about this many references, the other searches of a call look only at the first level, so
-- that Redis is not held up.
local REFS_MAX = 8192

-- The task that a reference names: its id, or the holder of a biz id; nil if there is none.
local function holder_of(found, ref)
  if not string.find(ref, ':', 1, true) then
    return ref
  end
  local key = found.flow.base .. 'biz:' .. ref
  local held = not found.owners[key] and redis.call('GET', key)
  return found.owners[key] or held and string.match(held, '^(.-):%d+:L$')
end

-- What a task waits for in this queue. `here` has the tasks that this call has accepted.
local function awaited_by(found, id)
  local flow, refs, here = found.flow, {}, found.waiting_here[id]
  for _, one in ipairs(here or {}) do
    if one.home == '' then
      refs[#refs + 1] = one.ref
    end
  end
  local value = not here and redis.call('HGET', flow.unmet_key, id)
  if not value then
    return refs
  end
  local header = header_of(redis.call('HGET', flow.base .. 'tasks', id))
  for mark in string.gmatch(string.match(value, '^%w*'), '.') do
    local home, ref = ref_of(header, mark)
    if home == flow.own then
      refs[#refs + 1] = ref
    end
  end
  return refs
end

-- Returns the tasks between this one and itself, with `,` between them, nil if it does not wait for
-- itself. `own_ref` has its biz id.
local function cycle_of(found, id, own_ref, unmet)
  local walk, from = {}, { [id] = '' }
  local function visit(refs, via)
    found.walked = (found.walked or 0) + #refs
    for _, ref in ipairs(refs) do
      local next_id = ref == own_ref and id or holder_of(found, ref)
      if next_id == id then
        return true
      elseif next_id and not from[next_id] and #walk < WALK_MAX then
        walk[#walk + 1], from[next_id] = next_id, via
      end
    end
    return false
  end
  found.waiting_here[id] = unmet
  local at, via = 0, id
  while via and not visit(awaited_by(found, via), via) do
    at = at + 1
    via = found.walked < REFS_MAX and walk[at] or nil
  end
  found.waiting_here[id] = nil
  if not via then
    return nil
  end
  local path = {}
  while via ~= id do
    table.insert(path, 1, via)
    via = from[via]
  end
  return table.concat(path, ',')
end
