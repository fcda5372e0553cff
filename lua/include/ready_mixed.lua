-- ready_mixed: who is next where somebody is ranked or due, or where there are tombstones.

-- Behind tombstones, a claim looks at so many entries of the line.
local LOOK_MAX = 128

-- What is due of both kinds, in one list too; their priorities; and when the next one is due.
local function due_now(queue, now)
  local delayed, next_delayed = due_in(queue.delayed, now)
  local retry, next_retry = due_in(queue.retry, now)
  local next_due = next_delayed and next_retry and math.min(next_delayed, next_retry)
    or next_delayed or next_retry
  local all = { unpack(delayed) }
  for i = 1, #retry do
    all[#all + 1] = retry[i]
  end
  return { all = all, delayed = delayed, retry = retry,
    ranks = priorities_of(queue.priorities, all) }, next_due
end

-- The first of the line and the ranked among them. Looks further where tombstones were most of it.
local function first_in_line(queue, line, want)
  local ranked = redis.call('ZRANGE', queue.priority, 0, want, 'WITHSCORES')
  if #ranked == 0 and not queue.has_tombstones then
    local length = #line
    local ids, from_line = plain_ids(line, want)
    return ids, { from_line = from_line, length = length, is_cut = length > want, unranked = {},
      passed = {}, skip = {}, ranked_left = false }
  end
  local look = want
  while true do
    local is_cut = #line > look
    local skip = queue.has_tombstones and #line > 0 and skips_of(queue.skips, line) or {}
    local ids, from_line, unranked, passed = merged_ids(line, ranked, skip, want, is_cut)
    if #ids == want or not is_cut or look >= LOOK_MAX then
      return ids, { from_line = from_line, length = #line, is_cut = is_cut, unranked = unranked,
        passed = passed, skip = skip, ranked_left = #ranked > 2 * #unranked }
    end
    look = LOOK_MAX
    line = redis.call('LRANGE', queue.ready, 0, look)
  end
end

-- The ids that are next; how many entries of the line that takes, and whether the line goes on;
-- whether more is left; when the next task is due; what writes all but the line and tombstones; and
-- what strikes off the tombstones once the line is cut.
local function mixed_ids(queue, line, want, now)
  local due, next_due = { all = {}, delayed = {}, retry = {} }, queue.due_at
  if queue.is_due then
    due, next_due = due_now(queue, now)
  end
  local ids, front = first_in_line(queue, line, want)
  local started = 0
  -- Behind the line, unless more of it is there than was looked at.
  while #ids < want and not front.is_cut and started < #due.all
    and not (due.ranks and due.ranks[started + 1]) do
    started = started + 1
    ids[#ids + 1] = due.all[started]
  end
  local goes_on = front.is_cut or front.length > front.from_line
  local more = goes_on or front.ranked_left or #due.all > started
    or (next_due and next_due <= now)

  -- Whether the line is longer than it was.
  local function write()
    if #due.delayed > 0 then
      redis.call('ZREM', queue.delayed, unpack(due.delayed))
    end
    if #due.retry > 0 then
      redis.call('ZREM', queue.retry, unpack(due.retry))
    end
    if started < #due.all then
      local rest = { unpack(due.all, started + 1) }
      local rest_ranks = due.ranks and { unpack(due.ranks, started + 1, #due.all) }
      line_up(queue.ready, queue.priority, queue.wake, rest, rest_ranks, now)
    end
    if #front.unranked > 0 then
      redis.call('ZREM', queue.priority, unpack(front.unranked))
    end
    return started < #due.all
  end
  local function strike()
    strike_off(queue.skips, queue.meta, front.passed, front.skip)
  end
  return ids, front.from_line, goes_on, more, next_due, write, strike
end
