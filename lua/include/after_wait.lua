-- after_wait: tasks that begin to wait for their prerequisites.

-- An unmet prerequisite elsewhere is asked for again after this time, and then less and less often.
local FIRST_ASK_MS = 60000
-- A task of an operation asks once the operation has reached all its tasks, is cancelled, or fails.
-- Until then it is tied, so that it learns of a success. If nobody carries the operation on, it
-- asks after this time.
local LATER_ASK_MS = 3600000

-- A task waits. Each of `unmet` is a prerequisite: its mark, the queue that it belongs to ('' for
-- this one), its reference, and its state.
local function begin_wait(flow, id, unmet, due, has_lane, give_up_at, now)
  local first, is_step = unmet[1], flow.is_step[id]
  if not unmet[2] and first.home == '' and first.state == 'open' and first.mark ~= TAKEN
    and not (due or has_lane or give_up_at or is_step) then
    tie(flow, first.ref, id .. first.mark)
    add(flow.unmet, id, first.mark)
    return
  end
  is_step = is_step and is_former(first.mark)
  local marks, flags, asks = {}, has_lane and 'l' or '', is_step
  for i, one in ipairs(unmet) do
    marks[i] = one.mark
    if one.mark == TAKEN then
      flow.needed = NEEDS_OF_GROUPS
    end
    local is_elsewhere = one.home ~= ''
    if not is_elsewhere then
      tie(flow, one.ref, id .. one.mark)
    end
    if one.state == 'met' then
      post(flow, flow.own, 'end success 0 ' .. one.ref)
    elseif is_elsewhere then
      local verb = flow.asks_later and 'tie ' or 'ask '
      post(flow, one.home, verb .. id .. one.mark .. ' ' .. one.ref)
      asks = true
    elseif flow.asks_later then
      asks = asks or one.state ~= 'open'
    elseif one.state ~= 'open' then
      post(flow, flow.own, 'end ' .. one.state .. ' 0 ' .. one.ref)
    end
  end
  if asks then
    local wait = flow.asks_later and LATER_ASK_MS or FIRST_ASK_MS
    flow.asks[#flow.asks + 1], flow.asks[#flow.asks + 2] = whole(now + wait), id
    flags = flags .. 'e'
  end
  if give_up_at then
    flow.giveups[#flow.giveups + 1], flow.giveups[#flow.giveups + 2] = whole(give_up_at), id
    flags = flags .. 'g'
  end
  if is_step then
    flags = flags .. 's'
  end
  local value = table.concat(marks)
  if due or flags ~= '' then
    value = value .. ';' .. (due or '') .. ';' .. flags
  end
  change(flow.unmet, id, value)
end

-- Reads the keys that `write_waits` writes.
local function read_waits(flow)
  flow.needs = tonumber(redis.call('HGET', flow.meta, 'needs') or 1)
  flow.unmet.size = redis.call('HLEN', flow.unmet_key)
  flow.ties.size = redis.call('HLEN', flow.ties_key)
  flow.is_unmarked = not has_end_mark(flow.base, 'ties')
  redis.call('ZCARD', flow.base .. 'asks')
  redis.call('ZCARD', flow.base .. 'giveups')
  flow.asks, flow.giveups = {}, {}
end

local function mark_ties(flow)
  if flow.is_unmarked and has_changes(flow.ties) then
    set_end_mark(flow.base, 'ties')
  end
end

local function write_waits(flow, now)
  mark_ties(flow)
  write_ties(flow)
  write_unmet(flow)
  for key, members in pairs({ asks = flow.asks, giveups = flow.giveups }) do
    for first = 1, #members, 4000 do
      redis.call('ZADD', flow.base .. key, unpack(members, first,
        math.min(first + 3999, #members)))
    end
  end
  write_posts(flow, now)
  local needed = flow.needed or NEEDS_OF_AFTER
  if flow.needs < needed then
    redis.call('HSET', flow.meta, 'needs', needed)
  end
end
