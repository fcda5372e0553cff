-- submit_options: the options of the tasks of a submit that are not plain, and the tasks that are
-- already stored.

-- The byte of `&`.
local AFTER_MARK = 38
-- The byte of `*`.
local GATHER_MARK = 42
-- The byte of `=`.
local AGAIN_MARK = 61

local function leave_out(found, position, owner)
  found.taken[#found.taken + 1] = position .. '=' .. owner
  found.apart[position] = 'taken'
  found.answers[position] = owner
end

-- Omits the tasks that are already stored.
local function leave_out_stored(tasks, found, ids)
  local records = redis.call('HMGET', tasks, unpack(ids))
  for position = 1, #ids do
    if records[position] then
      leave_out(found, position, ids[position])
    end
  end
end

-- Omits a task that appears a second time in the call. Returns a list of these tasks, because each
-- gets the answer of the first.
local function leave_out_repeated(found, ids)
  local first, repeated = {}, {}
  for position, id in ipairs(ids) do
    if first[id] and found.apart[position] ~= 'taken' then
      found.apart[position] = 'taken'
      repeated[#repeated + 1] = { position, first[id], id }
    end
    first[id] = first[id] or position
  end
  return repeated
end

-- Returns the marks of some biz ids, with false for none. MGET treats a key of another type as
-- absent. GET refuses it, and so does this function.
local function marks_of(keys)
  local marks, stored = redis.call('MGET', unpack(keys)), 0
  for i = 1, #keys do
    stored = stored + (marks[i] and 1 or 0)
  end
  if redis.call('EXISTS', unpack(keys)) > stored then
    for i = 1, #keys do
      redis.call('GET', keys[i])
    end
  end
  return marks
end

-- Whether a task waits for this one, which is new. Without such a task it can't wait for itself.
local function is_awaited(found, id, ref)
  if found.asked[id] or ref and found.asked[ref] then
    return true
  elseif found.flow.ties.size == 0 then
    return false
  end
  local ties = redis.call('HMGET', found.flow.ties_key, id, ref or id)
  return ties[1] or ties[2]
end

-- Notes what the accepted tasks before this one wait for. Those without an option are among them.
local function note_waiting(found, ids, position)
  local at = found.waits_noted + 1
  while found.waits[at] and found.waits[at] < position do
    local before = found.waits[at]
    if found.apart[before] ~= 'taken' then
      found.waiting_here[ids[before]] = found.unmet[before]
    end
    at = at + 1
  end
  found.waits_noted = at - 1
end

-- Returns the tasks between this one and itself, nil if it does not wait for itself.
local function cycle_through(found, ids, position, ref)
  local id = ids[position]
  if not is_awaited(found, id, ref) then
    return nil
  end
  note_waiting(found, ids, position)
  return found.walking()(found, id, ref, found.unmet[position])
end

-- Decides about one task by its option, by the store and by the tasks that the call has accepted so
-- far. `found` collects the decisions.
local function read_option(queue, found, option, ids, now)
  local position, due, rank_of, biz, window, blob, stamped =
    tonumber(option), '', '', found.keys_taken + 1, '0', '0', '0'
  if not position then
    position, due, rank_of, biz, window, blob, stamped =
      string.match(option, '^(%d+);([^;]*);([^;]*);(%d+);(%d+);(%d+);(%d)$')
    position, biz = tonumber(position), tonumber(biz)
  end
  if biz > 0 then
    found.keys_taken = biz
  end
  local id = ids[position]
  if found.apart[position] == 'taken' then
    return
  end
  local key, owner = queue.biz_keys[biz], nil
  if key then
    owner = found.owners[key] or biz_owner(queue.tasks, found.held[biz], now)
  end
  if owner and owner ~= id then
    leave_out(found, position, owner)
    return
  end
  if found.unmet[position] then
    local ref = key and string.sub(key, #found.flow.base + 5)
    local cycle = cycle_through(found, ids, position, ref)
    if cycle then
      leave_out(found, position, '*' .. cycle)
      return
    end
  end
  if key then
    found.owners[key] = id
    local size = #found.marks
    found.marks[size + 1] = key
    found.marks[size + 2] = biz_mark(id, window == '0' and 0 or now + tonumber(window))
  end
  if blob ~= '0' then
    found.blobs[#found.blobs + 1] = id
    found.blobs[#found.blobs + 1] = queue.blobs_given[tonumber(blob)]
  end
  if rank_of ~= '' then
    found.priorities[#found.priorities + 1] = id
    found.priorities[#found.priorities + 1] = rank_of
  end
  if stamped == '1' then
    found.stamps[position] = stamp_of(now)
  end
  local due_ms = 0
  if due ~= '' then
    due_ms = tonumber(string.sub(due, 3)) + (string.sub(due, 1, 2) == 'in' and now or 0)
  end
  if found.unmet[position] then
    found.due_of[position] = due_ms > now and whole(due_ms) or nil
  elseif due_ms > now then
    found.later[#found.later + 1] = whole(due_ms)
    found.later[#found.later + 1] = id
    found.due_first = math.min(found.due_first or due_ms, due_ms)
    found.apart[position] = 'later'
  elseif rank_of ~= '' then
    found.ranked[#found.ranked + 1] = position
    found.ranks[#found.ranks + 1] = rank_of
    found.earlier[position] = tonumber(rank_of) * PRIORITY_STEP_MS
    found.apart[position] = 'ranked'
  end
end

-- Returns the tasks that are ready and have a priority, and their priorities.
local function ranked_of(found, ids)
  local ranked, ranks = {}, {}
  for i, position in ipairs(found.ranked) do
    if found.apart[position] == 'ranked' then
      ranked[#ranked + 1] = ids[position]
      ranks[#ranked] = found.ranks[i]
    end
  end
  return ranked, ranks
end

-- Returns the answers by position, in the form of the reply of submit.
local function in_order(answers, count)
  local taken = {}
  for position = 1, count do
    if answers[position] then
      taken[#taken + 1] = position .. '=' .. answers[position]
    end
  end
  return taken
end

-- A task that is submitted under the id of a deleted task must not count as deleted. Returns the
-- key and the ids that leave it. The key is derived, because few calls need it.
local function deleted_of(meta, found, ids)
  local deleted, again = string.sub(meta, 1, -5) .. 'deleted', {}
  if redis.call('ZCARD', deleted) > 0 then
    for position, id in ipairs(ids) do
      if found.apart[position] ~= 'taken' then
        again[#again + 1] = id
      end
    end
  end
  return deleted, again
end

local function hset_all(key, pairs_of)
  for first = 1, #pairs_of, 4000 do
    redis.call('HSET', key, unpack(pairs_of, first, math.min(first + 3999, #pairs_of)))
  end
end

-- `apart` has, for each position that is not added to the ready list, the reason; `taken` has the
-- owner for each task that is not admitted; `stamps` has the text before records; `earlier` has by
-- how many ms a priority ranks a ready task before others. `write` writes everything except
-- records and the ready list.
local function read_options(queue, options, ids, now, may_exist, may_repeat)
  local found = { apart = {}, taken = {}, answers = {}, owners = {}, marks = {}, held = {},
    keys_taken = 0, blobs = {}, priorities = {}, stamps = {}, later = {}, ranked = {}, ranks = {},
    unmet = {}, due_of = {}, earlier = {} }
  if may_exist then
    leave_out_stored(queue.tasks, found, ids)
  end
  local repeated = may_repeat and leave_out_repeated(found, ids) or {}
  if #queue.biz_keys > 0 then
    found.held = marks_of(queue.biz_keys)
  end
  local first, wait_for_prerequisites, write_waits = 1, nil, nil
  local join_submitted, write_submitted, write_again
  if string.byte(options[1] or '') == AGAIN_MARK then
    local again = queue.again()
    first, write_again = again(string.sub(queue.meta, 1, -5), found, options, ids)
  end
  if string.byte(options[first] or '') == AFTER_MARK then
    local read_prerequisites
    read_prerequisites, wait_for_prerequisites, write_waits, found.walking = queue.waiting()
    first = read_prerequisites(queue, found, options, first, ids, now)
  end
  for i = first, #options do
    if options[i] == '+' then
      found.has_flow = tonumber(redis.call('HGET', queue.meta, 'needs') or 1) < NEEDS_OF_GROUPS
    elseif string.byte(options[i]) == GATHER_MARK then
      join_submitted, write_submitted = queue.gathered()
      join_submitted(found, queue, options[i], ids, now)
    else
      read_option(queue, found, options[i], ids, now)
    end
  end
  for _, again in ipairs(repeated) do
    leave_out(found, again[1], found.answers[again[2]] or again[3])
  end
  if may_exist and next(found.answers) then
    found.taken = in_order(found.answers, #ids)
  end
  local deleted, again = nil, {}
  if may_exist then
    deleted, again = deleted_of(queue.meta, found, ids)
  end
  if found.flow then
    wait_for_prerequisites(found, ids, now)
  end
  local due_hint, size
  if #found.later > 0 then
    size = redis.call('ZCARD', queue.delayed)
    due_hint = redis.call('HGET', queue.meta, 'due')
  end
  if #found.priorities > 0 then
    redis.call('HLEN', queue.priorities)
    redis.call('ZCARD', queue.priority)
  end
  if #found.blobs > 0 then
    redis.call('HLEN', queue.blobs)
  end

  -- Another client may have stored the same tasks, and may be gone before it has told others.
  found.posts = found.flow and (#found.flow.targets > 0
    or #found.taken > 0 and redis.call('ZCARD', found.flow.base .. 'outboxes') > 0)

  function found.write()
    if #again > 0 then
      redis.call('ZREM', deleted, unpack(again))
    end
    hset_all(queue.blobs, found.blobs)
    hset_all(queue.priorities, found.priorities)
    if #found.marks > 0 then
      redis.call('MSET', unpack(found.marks))
    end
    local ranked, ranks = ranked_of(found, ids)
    rank(queue.priority, queue.wake, ranked, ranks, now)
    if found.flow and found.flow.has_waits then
      write_waits(found.flow, now)
    end
    if found.has_flow then
      redis.call('HSET', queue.meta, 'needs', NEEDS_OF_GROUPS)
    end
    if write_submitted then
      write_submitted(found, queue)
    end
    if write_again then
      write_again()
    end
    if found.due_first then
      zadd_as_table(queue.delayed, size, found.later)
      due_at_latest(queue.meta, queue.wake, due_hint, found.due_first)
    end
  end
  return found
end
