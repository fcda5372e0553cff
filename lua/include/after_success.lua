-- after_success: what successes mean for the tasks that wait for them.

-- A call strikes at most this many waiters. The rest learns of the success by an effect.
local STRUCK_MAX = 256

-- The references of a task: its id, and its task name and biz id, as the key of the mark shows
-- them.
local function add_refs(refs, base, id, biz_of, biz_keys)
  refs[#refs + 1] = id
  if biz_of and biz_of[id] then
    refs[#refs + 1] = string.sub(biz_keys[biz_of[id]], #base + 5)
  end
end

-- Returns what successes do for those who wait for them, nil if nothing.
local function flow_of_success(meta, done, biz_of, biz_keys, now)
  local flow, refs = flow_of(meta), {}
  for _, id in ipairs(done) do
    add_refs(refs, flow.base, id, biz_of, biz_keys)
  end
  load(flow.ties, flow.ties_key, refs)
  local waiters, ids, is_many = {}, {}, false
  for _, ref in ipairs(refs) do
    local value = flow.ties.now[ref]
    if value == '*' or value and #ids >= STRUCK_MAX then
      post(flow, flow.own, 'end success 0 ' .. ref)
      is_many = true
    elseif value then
      for waiter in string.gmatch(value, '%S+') do
        waiters[#waiters + 1] = waiter
        ids[#ids + 1] = string.sub(waiter, 1, 22)
      end
      change(flow.ties, ref, false)
    end
  end
  if #waiters == 0 and not is_many then
    return nil
  end
  load(flow.unmet, flow.unmet_key, ids)
  for i, waiter in ipairs(waiters) do
    if #waiter == 23 then
      strike(flow, ids[i], string.sub(waiter, 23))
    else
      post(flow, string.sub(waiter, 25), 'met ' .. string.sub(waiter, 1, 23))
    end
  end
  read_free(flow, now)
  return flow
end

local function write_success(flow, now)
  write_ties(flow)
  write_unmet(flow)
  write_free(flow, now)
  write_posts(flow, now)
end

-- The outcomes to keep: later submits find the successes of tasks with an `outcome_ttl`. Reads
-- their keys.
local function outcomes_of(base, remembered, biz_of, biz_keys)
  local outcomes, outcome_keys = {}, {}
  for id, keep in pairs(remembered) do
    local refs = {}
    add_refs(refs, base, id, biz_of, biz_keys)
    for _, ref in ipairs(refs) do
      outcome_keys[#outcome_keys + 1] = base .. 'outcome:' .. ref
      outcomes[#outcomes + 1] = { key = outcome_keys[#outcome_keys], id = id, keep = keep }
    end
  end
  redis.call('EXISTS', unpack(outcome_keys))
  return outcomes
end
