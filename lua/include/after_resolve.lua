-- after_resolve: whether prerequisites that belong to this queue are met.

-- Whether a task without a record is among the last successes; all are read once for a call.
local function has_succeeded(flow, id)
  if not flow.succeeded then
    flow.succeeded = {}
    for _, summary in ipairs(redis.call('LRANGE', flow.base .. 'success', '0', '-1')) do
      flow.succeeded[string.sub(summary, 1, 22)] = true
    end
  end
  return flow.succeeded[id] or redis.call('EXISTS', flow.base .. 'result:' .. id) == 1
end

-- Whether a cancelled task ended because of what no requeue can change.
local function is_void(flow, id)
  local _, _, flags = parts_of(redis.call('HGET', flow.base .. 'unmet_ended', id) or '')
  return string.find(flags, 'v', 1, true)
end

-- The state of a task or a group by its id: `met`, `open`, or how it has ended.
local function state_of_id(flow, id)
  if redis.call('HEXISTS', flow.base .. 'tasks', id) == 1 then
    return redis.call('ZSCORE', flow.base .. 'dead', id) and 'dead'
      or redis.call('ZSCORE', flow.base .. 'cancelled', id)
      and (is_void(flow, id) and VOID or 'cancelled') or 'open'
  end
  local group = group_of(flow.base, id)
  if group then
    return group.state == 'success' and 'met' or group.state and VOID or 'open'
  elseif has_succeeded(flow, id) then
    return 'met'
  end
  flow.is_gone[id] = true
  return redis.call('ZSCORE', flow.base .. 'deleted', id) and 'forgotten' or 'open'
end

-- The same for the task that has a biz id.
local function state_of_key(flow, ref, now)
  local mark = redis.call('GET', flow.base .. 'biz:' .. ref)
  local owner, valid_until, phase = string.match(mark or '', '^(.-):(%d+):([LD])$')
  flow.is_gone[ref] = phase ~= 'L'
  if phase == 'D' then
    return now < tonumber(valid_until) and 'met' or 'open'
  end
  return owner and redis.call('ZSCORE', flow.base .. 'dead', owner) and 'dead' or 'open'
end

-- The states of references, in their order. A success that is remembered decides.
local function states_of_refs(flow, refs, now)
  local states, keys = {}, {}
  for i, ref in ipairs(refs) do
    keys[i] = flow.base .. 'outcome:' .. ref
  end
  for first = 1, #keys, 1000 do
    local last = math.min(first + 999, #keys)
    for i, outcome in ipairs(redis.call('MGET', unpack(keys, first, last))) do
      local ref = refs[first + i - 1]
      if outcome then
        states[first + i - 1] = 'met'
      elseif string.find(ref, ':', 1, true) then
        states[first + i - 1] = state_of_key(flow, ref, now)
      else
        states[first + i - 1] = state_of_id(flow, ref)
      end
    end
  end
  return states
end
