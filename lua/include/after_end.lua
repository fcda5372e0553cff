-- after_end: tasks that end without success, or while they wait for their prerequisites.

-- The group of a task, and those who wait for it, under its id or its key, learn of its end by an
-- effect, because they can be many, and each that is cancelled ends, too. If the task has lost its
-- key before, those who wait under the key wait for another one.
local function tell_end(flow, id, state, has_lost_key)
  if flow.has_ties == nil then
    flow.has_ties = redis.call('HLEN', flow.ties_key) > 0
  end
  if not flow.has_ties and not flow.has_groups then
    return
  end
  local refs, header = { id }, header_of(redis.call('HGET', flow.base .. 'tasks', id))
  local of_id = flow.is_void[id] and VOID or state
  local home, gid, index = string.match(type(header.gr) == 'string' and header.gr or '',
    '^([^/]*)/([^:]*):(%d+)$')
  if home then
    post(flow, home, 'member ' .. gid .. ' ' .. index .. ' ' .. of_id .. ' '
      .. whole(tonumber(header.gp) or 0))
  end
  if not flow.has_ties then
    return
  end
  if not has_lost_key and type(header.z) == 'string' and type(header.t) == 'string' then
    refs[2] = header.t .. ':' .. header.z
  end
  load(flow.ties, flow.ties_key, refs)
  for _, ref in ipairs(refs) do
    if flow.ties.now[ref] then
      -- Another task may come under its key.
      post(flow, flow.own, 'end ' .. (ref == id and of_id or state) .. ' 0 ' .. ref)
    end
  end
end

-- A task no longer waits, because it ends. Returns whether it waited. `is_kept` is true if a
-- requeue must let it wait again. The flag `v` then says that its end is void.
local function leave_unmet(flow, id, header, is_kept)
  local value = cached(flow.unmet, flow.unmet_key, id)
  if not value then
    return false
  end
  local marks, due, flags = parts_of(value)
  for mark in string.gmatch(marks, '.') do
    local queue, name = ref_of(header, mark)
    if queue == flow.own then
      untie(flow, name, id .. mark)
    elseif queue ~= '' then
      post(flow, queue, 'drop ' .. id .. mark .. ' ' .. name)
    end
  end
  leaves_unmet(flow, id, flags)
  if is_kept then
    if flow.is_void[id] then
      value = marks .. ';' .. (due and whole(due) or '') .. ';' .. flags .. 'v'
    end
    redis.call('HLEN', flow.base .. 'unmet_ended')
    flow.kept[#flow.kept + 1], flow.kept[#flow.kept + 2] = id, value
  end
  return true
end

-- What a call that ends tasks does to dependants; nil in a queue that has never had any.
local function flow_of_ends(meta, needs)
  if not needs or tonumber(needs) < NEEDS_OF_AFTER then
    return nil
  end
  local flow = flow_of(meta)
  flow.kept, flow.has_groups, flow.is_void = {}, tonumber(needs) >= NEEDS_OF_GROUPS, {}
  function flow.tell_end(id, state, has_lost_key)
    tell_end(flow, id, state, has_lost_key)
  end
  function flow.write(now)
    write_ties(flow)
    write_unmet(flow)
    if #flow.kept > 0 then
      redis.call('HSET', flow.base .. 'unmet_ended', unpack(flow.kept))
    end
    write_posts(flow, now)
  end
  return flow
end
