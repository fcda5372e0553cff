-- after_success: what successes mean for the tasks that wait for them.

-- A task of this queue that waits, `<id><mark>`.
local WAITER_LENGTH, TAKEN_BYTE = 23, string.byte(TAKEN)
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

-- Adds the tasks that wait for a success to `told`: their ids, marks, queues and results. `value`
-- is what `ties` has. Many tasks, and those that take a large result, learn of it by an effect.
local function tell_waiters(flow, told, ref, value)
  local n, result = #told.ids + 1, nil
  if #value == WAITER_LENGTH and n <= STRUCK_MAX
    and string.byte(value, WAITER_LENGTH) ~= TAKEN_BYTE then
    -- The usual case: one task of this queue, which takes no result.
    told.ids[n], told.marks[n] = string.sub(value, 1, 22), string.sub(value, 23)
    remove(flow.ties, ref)
    return
  end
  if value ~= '*' and string.find(value .. ' ', '%S' .. TAKEN .. '[ @]') then
    told.by_ref = told.by_ref or told.results_by_ref()
    result = told.by_ref[ref]
  end
  if value == '*' or n > STRUCK_MAX or result and #result[2] > RESULT_PASSED_MAX then
    post(flow, flow.own, 'end success 0 ' .. ref)
    return
  end
  for waiter in string.gmatch(value, '%S+') do
    local mark = string.sub(waiter, 23, 23)
    told.ids[n], told.marks[n] = string.sub(waiter, 1, 22), mark
    told.queues[n] = #waiter > WAITER_LENGTH and string.sub(waiter, 25) or nil
    told.results[n] = mark == TAKEN and result or nil
    n = n + 1
  end
  remove(flow.ties, ref)
end

-- Returns what successes do for the tasks that wait, nil if nothing. `seen` has the references for
-- which somebody waits, and possibly who. `handed` has the results, and the groups that end and the
-- effects on groups elsewhere.
local function flow_of_success(meta, seen, done, biz, handed, now)
  local flow, members = flow_of(meta), handed.members
  local told = { ids = {}, marks = {}, queues = {}, results = {} }
  function told.results_by_ref()
    return results_by_ref(flow, done, biz, handed.results, members)
  end
  local who = seen.who or #seen.tied > 0 and redis.call('HMGET', flow.ties_key, unpack(seen.tied))
  for i, ref in ipairs(seen.tied) do
    if who[i] then
      tell_waiters(flow, told, ref, who[i])
    end
  end
  for _, one in ipairs(members and members.there or {}) do
    post(flow, one.home, 'member ' .. one.gid .. ' ' .. one.index .. ' success 0 '
      .. result_word(one.id, one.result))
  end
  if #told.ids == 0 and #flow.targets == 0 then
    return nil
  end
  load(flow.unmet, flow.unmet_key, told.ids)
  for n, id in ipairs(told.ids) do
    local mark, queue, result = told.marks[n], told.queues[n], told.results[n]
    if queue then
      post(flow, queue, 'met ' .. id .. mark
        .. (result and ' ' .. result_word(result[1], result[2]) or ''))
    else
      strike(flow, id, mark, result and result[2])
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
