-- after_again: a requeued task that ended while it waited for its prerequisites.

-- Returns what the call does, nil if the task did not wait. `is_blocked` is true if it waits again,
-- and `open` has for what. In a batch of an operation, `due` is when the task was due, if that is
-- to come. What it waits for comes back later in the same operation, so it asks after that.
local function again_of(meta, needs, id, header, now, batch)
  if not needs or tonumber(needs) < NEEDS_OF_AFTER then
    return nil
  end
  local value = redis.call('HGET', string.sub(meta, 1, -5) .. 'unmet_ended', id)
  if not value then
    return nil
  end
  local flow, here, refs, unmet = flow_of(meta), {}, {}, {}
  local marks, due, flags = parts_of(value)
  flow.is_step[id] = string.find(flags, 's', 1, true)
  flow.due = batch and due and due > now and due or nil
  flow.asks_later = batch ~= nil
  for mark in string.gmatch(marks, '.') do
    local home, ref = ref_of(header, mark)
    local one = { mark = mark, home = home == flow.own and '' or home, ref = ref, state = 'open' }
    if one.home == '' then
      here[#here + 1], refs[#refs + 1] = one, ref
    end
    unmet[#unmet + 1] = one
  end
  for i, state in ipairs(states_of_refs(flow, refs, now)) do
    here[i].state = state
  end
  local open = {}
  for _, one in ipairs(unmet) do
    if one.state ~= 'met' or one.mark == TAKEN then
      open[#open + 1] = one
    end
  end
  read_waits(flow)
  flow.is_blocked, flow.open = #open > 0, open
  if flow.is_blocked then
    local wait = tonumber(header.au)
    local is_held_back = type(header.n or header.ga) == 'string'
    begin_wait(flow, id, open, flow.due, is_held_back, wait and now + wait, now)
  end
  return flow
end

local function write_again(flow, id, now)
  redis.call('HDEL', flow.base .. 'unmet_ended', id)
  write_waits(flow, now)
end
