-- after_success: what successes mean for the tasks that wait for them.

-- A call strikes at most this many waiters. The rest learns of the success by an effect.
local STRUCK_MAX = 256
-- Those who take a larger result get it by an effect, a few at a time.
local RESULT_PASSED_MAX = 65536

-- The results of the successes of a call, by reference, for those who take them: the id of the task
-- and its result.
local function results_by_ref(flow, done, biz, results, members)
  local by_ref, by_id = {}, {}
  for _, result in ipairs(results or {}) do
    by_id[string.sub(result.key, #flow.base + 8)] = result.body
  end
  for _, id in ipairs(done) do
    local refs = {}
    add_refs(refs, flow.base, id, biz.of, biz.keys)
    for _, ref in ipairs(refs) do
      by_ref[ref] = { id, by_id[id] or 'null' }
    end
  end
  for _, group in ipairs(members and members.ended or {}) do
    by_ref[group.gid] = { group.gid, group_handle(flow, group) }
  end
  return by_ref
end

-- Returns what successes do for the tasks that wait, nil if nothing. `tied` has the references for
-- which somebody waits. `handed` has the results, and the groups that end and the effects on groups
-- elsewhere.
local function flow_of_success(meta, tied, done, biz, handed, now)
  local flow, by_ref, members = flow_of(meta), nil, handed.members
  local waiters, ids, passed = {}, {}, {}
  load(flow.ties, flow.ties_key, tied)
  for _, ref in ipairs(tied) do
    local value, result = flow.ties.now[ref], nil
    if value and value ~= '*' and string.find(value .. ' ', '%S' .. TAKEN .. '[ @]') then
      by_ref = by_ref or results_by_ref(flow, done, biz, handed.results, members)
      result = by_ref[ref]
    end
    if value == '*' or value and #ids >= STRUCK_MAX
      or result and #result[2] > RESULT_PASSED_MAX then
      post(flow, flow.own, 'end success 0 ' .. ref)
    elseif value then
      for waiter in string.gmatch(value, '%S+') do
        waiters[#waiters + 1] = waiter
        ids[#ids + 1] = string.sub(waiter, 1, 22)
        passed[#waiters] = string.sub(waiter, 23, 23) == TAKEN and result
      end
      change(flow.ties, ref, false)
    end
  end
  for _, one in ipairs(members and members.there or {}) do
    post(flow, one.home, 'member ' .. one.gid .. ' ' .. one.index .. ' success 0 '
      .. result_word(one.id, one.result))
  end
  if #waiters == 0 and #flow.targets == 0 then
    return nil
  end
  load(flow.unmet, flow.unmet_key, ids)
  for i, waiter in ipairs(waiters) do
    local result = passed[i]
    if #waiter == 23 then
      strike(flow, ids[i], string.sub(waiter, 23), result and result[2])
    else
      post(flow, string.sub(waiter, 25), 'met ' .. string.sub(waiter, 1, 23)
        .. (result and ' ' .. result_word(result[1], result[2]) or ''))
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
