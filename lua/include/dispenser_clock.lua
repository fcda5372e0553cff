-- dispenser_clock: the times of assignees and items when the clock was set back. Without this, they
-- would be over as much later as the clock was set back.

-- One call moves at most so many of each.
local MOVED_MAX = '512'

-- Notes that an item has a time that no caller has set by the present clock.
local function move_item(back, item, assignee)
  local moved, deadline = back.moved, whole(back.latest_ms)
  moved.texts[item] = deadline .. ':' .. assignee
  moved.ends[#moved.ends + 1], moved.ends[#moved.ends + 2] = deadline, item
  moved.marks[#moved.marks + 1], moved.marks[#moved.marks + 2] = item, moved.texts[item]
end

-- Reads the times that are later than the longest ones of all callers allow. The caller's own times
-- are nil if it sets none. So a program with shorter times does not end those of others.
local function late_times(back, head, now, hold_ms, hold_max_ms)
  local keys, raised = back.keys, {}
  if hold_ms and hold_ms > head.hold_ms then
    head.hold_ms, raised[1], raised[2] = hold_ms, 'hold', whole(hold_ms)
  end
  if hold_max_ms and hold_max_ms > head.hold_max_ms then
    head.hold_max_ms = hold_max_ms
    raised[#raised + 1], raised[#raised + 2] = 'hold_max', whole(hold_max_ms)
  end
  back.raised, back.hold_ms = raised, head.hold_ms
  local expiry = whole(now + head.hold_ms)
  local names = head.hold_ms > 0 and redis.call('ZRANGEBYSCORE', keys.assignees, '(' .. expiry,
    '+inf', 'LIMIT', '0', MOVED_MAX) or {}
  back.latest_ms = now + head.hold_max_ms
  local items = head.hold_max_ms > 0 and redis.call('ZRANGEBYSCORE', keys.deadlines,
    '(' .. whole(back.latest_ms), '+inf', 'LIMIT', '0', MOVED_MAX) or {}
  if not (names[1] or items[1]) then
    return
  end
  back.moved = { names = {}, texts = {}, ends = {}, marks = {} }
  for i = 1, #names do
    back.moved.names[2 * i - 1], back.moved.names[2 * i] = expiry, names[i]
  end
  local texts = items[1] and redis.call('HMGET', keys.holders, unpack(items))
  for i = 1, #items do
    if texts[i] then
      local _, assignee = holder_of(texts[i])
      move_item(back, items[i], assignee)
    end
  end
end

-- Replaces what `holders` says of the caller's items, also beyond the bound.
local function moved_texts(back, items, texts, assignee)
  if back.moved then
    for i = 1, #items do
      if not back.moved.texts[items[i]] and holder_of(texts[i] or '0:') > back.latest_ms then
        move_item(back, items[i], assignee)
      end
      texts[i] = back.moved.texts[items[i]] or texts[i]
    end
  end
end

-- Writes these times before any other change, so that the script's own changes count.
local function write_moved(back, dispenser)
  if back.raised[1] then
    redis.call('HSET', dispenser, unpack(back.raised))
  end
  local moved = back.moved
  if not moved then
    return
  end
  if moved.names[1] then
    redis.call('ZADD', back.keys.assignees, unpack(moved.names))
  end
  if moved.ends[1] then
    redis.call('ZADD', back.keys.deadlines, unpack(moved.ends))
    redis.call('HSET', back.keys.holders, unpack(moved.marks))
  end
end
