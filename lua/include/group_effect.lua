-- group_effect: ends of members that reach their group as effects: those without success, and those
-- of other queues.

-- What a member does to a group that ends without it. Without one of these the group waits until
-- the member is requeued. A member that was deleted, or waited for a group that was cancelled, gets
-- nothing from a requeue, so it cancels the group.
local GROUP_CANCEL, GROUP_RUN = '1', '2'

-- Reads a group once in a call. Reads the keys that `write_counts` writes.
local function counted_group(flow, groups, gid)
  local group = groups[gid]
  if group == nil then
    group = group_of(flow.base, gid) or false
    groups[gid] = group
    if group then
      groups[#groups + 1] = group
      group.size = redis.call('HLEN', group.results_key)
      group.set, group.lose, group.find, group.by_index = {}, {}, {}, {}
      redis.call('ZCARD', flow.base .. 'groups')
    end
  end
  return group
end

-- Whether the group waits until the member is requeued.
local function is_lost(group, index)
  if group.lost == 0 and #group.lose == 0 then
    return false
  elseif group.by_index['-' .. index] == nil then
    group.by_index['-' .. index] = redis.call('HEXISTS', group.key, '-' .. index) == 1
  end
  return group.by_index['-' .. index]
end

local function count_member(group, index, value)
  group.by_index[index] = true
  group.set[#group.set + 1], group.set[#group.set + 2] = index, value
  group.done = group.done + 1
  if is_lost(group, index) then
    group.by_index['-' .. index] = false
    group.find[#group.find + 1] = '-' .. index
    group.lost = group.lost - 1
  end
end

-- A member of the queue `source` has ended. `rest` is `<position> <state> <policy>` and possibly
-- its result.
local function count_effect(flow, groups, gid, rest, source)
  local group = counted_group(flow, groups, gid)
  local index, state, policy, result = string.match(rest, '^(%d+) (%a+) (%d) ?(.*)$')
  if not group or not index or group.state or tonumber(index) >= group.total then
    return
  elseif group.by_index[index] == nil then
    group.by_index[index] = redis.call('HEXISTS', group.results_key, index) == 1
  end
  if group.by_index[index] then
    return
  elseif state == 'success' then
    -- Of a large result that is gone, only the success is left.
    count_member(group, index, result == '' and 'null' or string.sub(result, 2))
  elseif policy == GROUP_RUN then
    local kind = state == 'dead' and 'failed' or 'cancelled'
    state = state == VOID and 'cancelled' or state
    group[kind] = group[kind] + 1
    count_member(group, index, '!' .. state)
  elseif policy == GROUP_CANCEL or state == 'forgotten' or state == VOID then
    group.state, group.ends, group.by = 'cancelled', true, index .. ' ' .. source
  elseif not is_lost(group, index) then
    group.by_index['-' .. index] = true
    group.lose[#group.lose + 1], group.lose[#group.lose + 2] = '-' .. index, state
    group.lost = group.lost + 1
  end
  if group.is_sealed and group.done == group.total then
    group.state, group.ends = 'success', true
  end
end

-- Tasks that wait for groups that end learn of it, also those that asked in this call.
local function tell_group_ends(flow, groups)
  for _, group in ipairs(groups) do
    if group.ends and cached(flow.ties, flow.ties_key, group.gid) then
      local state = group.state == 'success' and group.state or VOID
      post(flow, flow.own, 'end ' .. state .. ' 0 ' .. group.gid)
    end
  end
end

local function write_counts(flow, groups, now)
  for _, group in ipairs(groups) do
    if #group.set > 0 then
      hset_as_table(group.results_key, group.size, group.set)
    end
    redis.call('HSET', group.key, 'done', whole(group.done), 'failed', whole(group.failed),
      'cancelled', whole(group.cancelled), 'lost', whole(group.lost), unpack(group.lose))
    if #group.find > 0 then
      redis.call('HDEL', group.key, unpack(group.find))
    end
    if group.by then
      redis.call('HSET', group.key, 'by', group.by)
    end
    if group.ends then
      write_group_end(flow.base, group, group.state, now)
    end
  end
end
