-- after_answer: what an end without success means for tasks that wait, by their policies; and tasks
-- that end because a prerequisite is not met.

-- The policies in a header; without one the task continues to wait.
local CANCEL, RUN = 1, 2

-- A task whose prerequisite ended otherwise may start, is cancelled, or waits for a requeue, if one
-- can help. A result that is gone does not come back, and neither does a task that is no longer
-- stored; another one may have its biz id later. Returns whether it no longer waits for it.
local function answer(flow, id, mark, state)
  local value = cached(flow.unmet, flow.unmet_key, id)
  if not value or not string.find(parts_of(value), mark, 1, true) then
    return false
  end
  local header = header_of(redis.call('HGET', flow.base .. 'tasks', id))
  local queue, ref = ref_of(header, mark)
  local is_key = string.find(ref, ':', 1, true)
  local is_void = state == VOID or state == 'forgotten' and (mark == TAKEN or not is_key)
  if header.ap == RUN then
    strike(flow, id, mark)
    if queue == flow.own then
      untie(flow, ref, id .. mark)
    else
      post(flow, queue, 'drop ' .. id .. mark .. ' ' .. ref)
    end
  elseif header.ap == CANCEL or is_void then
    flow.is_void[id] = is_void
    leave_unmet(flow, id, header, true)
    flow.ends[#flow.ends + 1] = { id = id, header = header, ref = queue .. '/' .. ref,
      why = state == VOID and 'cancelled' or state }
  end
  return header.ap == RUN or header.ap == CANCEL or is_void
end

-- Ends the tasks of `flow.ends` in that state. Reads the keys that `write_unmet_ends` writes.
local function unmet_ends(flow, queue, state, now)
  local ids, base = {}, flow.base
  for i, ended in ipairs(flow.ends) do
    ids[i] = ended.id
  end
  local endings = endings_of(queue, ids)
  endings.histories, endings.tries = {}, {}
  if #ids > 0 then
    endings.tried = redis.call('HLEN', base .. 'tries')
  end
  for i, ended in ipairs(flow.ends) do
    local id, tries = ended.id, redis.call('HGET', base .. 'tries', ended.id)
    local failures, losses = tries_of(tries)
    local history = errors_with(redis.call('HGET', base .. 'errors', id), whole(now),
      '{"reason":"unmet","attempt":' .. whole(failures + losses) .. ',"worker":"","ref":'
      .. cjson.encode(ended.ref) .. ',"state":"' .. ended.why .. '"}')
    endings.histories[2 * i - 1], endings.histories[2 * i] = id, history
    if not tries then
      -- The counts show a claim that the task has a history.
      endings.tries[#endings.tries + 1], endings.tries[#endings.tries + 2] = id, '0:0:0'
    end
    if state == 'dead' then
      note_end(endings, i, id, state, history)
    else
      note_cancelled(queue, endings, i, id, ended.header, history)
    end
    -- Its record is read as it was before this call.
    endings.bytes[state] = endings.bytes[state] + (flow.grown and flow.grown[id] or 0)
  end
  return endings
end

local function write_unmet_ends(flow, queue, endings, now)
  if #endings.histories > 0 then
    redis.call('HSET', flow.base .. 'errors', unpack(endings.histories))
  end
  if #endings.tries > 0 then
    hset_as_table(flow.base .. 'tries', endings.tried, endings.tries)
  end
  write_ends(queue, endings, now)
end
