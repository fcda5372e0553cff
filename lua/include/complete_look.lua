-- complete_look: whether successes mean anything for others. Usually clients and tasks wait only
-- for other tasks than those of the call.

-- Reading a field of a hash costs Redis about as much as reading a field and its name.
local KEYS_COST = 2
-- Of so few fields, each is looked for among the tasks of the worker.
local FEW = 8

local function any_of(values)
  for i = 1, #values do
    if values[i] then
      return true
    end
  end
  return false
end

-- Finds how many fields these keys have, by the marks in `waiters`; the marks of those that have
-- none; and how many marks there are.
local function marked_in(base, waiters)
  local found, stale, count = {}, {}, 0
  for i, is_set in ipairs(redis.call('HMGET', waiters, '#cancel', '#permits', '#ties')) do
    if is_set then
      local name = i == 1 and 'cancel' or i == 2 and 'permits' or 'ties'
      local size = redis.call('HLEN', base .. name)
      count = count + 1
      if size > 0 then
        found[name] = size
      else
        stale[#stale + 1] = '#' .. name
      end
    end
  end
  return found, stale, count
end

-- Returns those of the references for which tasks wait, and possibly who waits for each. If tasks
-- wait for few, such as for a group, reading all of these costs less than looking for each
-- reference. If all references are ids of held tasks, `working` shows whether they have one of
-- these.
local function awaited_of(key, size, refs, working)
  local awaited, who, count = {}, {}, 0
  if size * KEYS_COST <= #refs then
    local keys, is_key = redis.call('HKEYS', key), {}
    if working and size <= FEW and not any_of(redis.call('HMGET', working, unpack(keys))) then
      return awaited, nil
    end
    for _, ref in ipairs(keys) do
      is_key[ref] = true
    end
    for i = 1, #refs do
      if is_key[refs[i]] then
        awaited[#awaited + 1] = refs[i]
      end
    end
    return awaited, nil
  end
  local waiters = redis.call('HMGET', key, unpack(refs))
  for i = 1, #refs do
    if waiters[i] then
      count = count + 1
      awaited[count], who[count] = refs[i], waiters[i]
    end
  end
  return awaited, who
end

-- Returns the references of these successes for which tasks wait, as `awaited_of` does.
local function tied_in(base, size, working, ids, biz, ended)
  local refs = ids
  if biz.of or #ended > 0 then
    refs = {}
    for _, id in ipairs(ids) do
      add_refs(refs, base, id, biz.of, biz.keys)
    end
    for _, group in ipairs(ended) do
      refs[#refs + 1] = group.gid
    end
  end
  return awaited_of(base .. 'ties', size, refs, refs == ids and working)
end

-- Returns what the ends mean for others, false if nothing. `awaited` is how many fields `waiters`
-- has, `biz` has the marks of the biz ids, and `members` the members of groups.
local function look_at(base, waiters, working, awaited, ids, biz, members)
  local found, stale, marks = marked_in(base, waiters)
  local tied, who = {}, nil
  if found.ties then
    tied, who = tied_in(base, found.ties, working, ids, biz, members and members.ended or {})
  end
  local seen = { found = found, stale = stale, tied = tied, who = who }
  -- Otherwise no client waits, no task was asked to stop, and no biz id is held.
  seen.has_endings = awaited > marks or found.cancel or biz.marks
  seen.has_flow = #tied > 0 or members and #members.there > 0
  return (seen.has_endings or seen.has_flow or found.permits or #stale > 0) and seen
end
