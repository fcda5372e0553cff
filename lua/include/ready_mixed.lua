-- ready_mixed: which tasks are next if some are ranked or due, or if there are tombstones.

-- After tombstones, a claim reads this many entries of the ready list.
local READ_MAX = 128

-- Returns the due tasks of both kinds; those of them that are ready now, in one list with their
-- priorities; what lanes and runs do with the others; and when the next task is due.
local function due_now(queue, now)
  local delayed, next_delayed = due_in(queue.delayed, now)
  local retry, next_retry = due_in(queue.retry, now)
  local next_due = next_delayed and next_retry and math.min(next_delayed, next_retry)
    or next_delayed or next_retry
  -- Usually only one of the kinds is due, and its list is not changed below.
  local all = #delayed == 0 and retry or delayed
  if #delayed > 0 and #retry > 0 then
    all = { unpack(delayed) }
    for i = 1, #retry do
      all[#delayed + i] = retry[i]
    end
  end
  local joins
  if queue.has_lanes then
    all, joins = past_lanes(queue, all)
  end
  local write_gathered
  if queue.gathered then
    local next_run
    all, next_run, write_gathered = queue.gathered()(queue, all, now)
    next_due = next_run and math.min(next_due or next_run, next_run) or next_due
  end
  return { all = all, delayed = delayed, retry = retry, joins = joins,
    write_gathered = write_gathered, ranks = priorities_of(queue.priorities, all) }, next_due
end

-- Merges the first entries of the ready list with the ranked tasks. Reads more if most entries are
-- tombstones.
local function first_ready(queue, entries, want)
  local ranked = redis.call('ZRANGE', queue.priority, 0, want, 'WITHSCORES')
  if #ranked == 0 and not queue.has_tombstones then
    local length = #entries
    local ids, from_ready, tried = plain_ids(entries, want)
    return ids, { from_ready = from_ready, length = length, is_cut = length > want,
      unranked = {}, passed = {}, skip = {}, ranked_left = false, is_untried = not tried }
  end
  local reads = want
  while true do
    local is_cut = #entries > reads
    local skip = queue.has_tombstones and #entries > 0 and skips_of(queue.skips, entries) or {}
    local ids, from_ready, unranked, passed = merged_ids(entries, ranked, skip, want, is_cut)
    if #ids == want or not is_cut or reads >= READ_MAX then
      return ids, { from_ready = from_ready, length = #entries, is_cut = is_cut,
        unranked = unranked, passed = passed, skip = skip, ranked_left = #ranked > 2 * #unranked }
    end
    reads = READ_MAX
    entries = redis.call('LRANGE', queue.ready, 0, reads)
  end
end

-- Returns the ids that are next; how many entries of the ready list they use, and whether the list
-- has more; whether work is left; when the next task is due; a function that writes everything
-- except the ready list and tombstones; and a function that removes the tombstones after the list
-- was cut. Sets `queue.is_untried` if none of these tasks was tried before.
local function mixed_ids(queue, entries, want, now)
  local due, next_due = { all = {}, delayed = {}, retry = {} }, queue.due_at
  if queue.is_due then
    due, next_due = due_now(queue, now)
  end
  local ids, front = first_ready(queue, entries, want)
  local started = 0
  -- Due tasks come after the ready list, unless the list has entries that were not read.
  while #ids < want and not front.is_cut and started < #due.all
    and not (due.ranks and due.ranks[started + 1]) do
    started = started + 1
    ids[#ids + 1] = due.all[started]
  end
  queue.is_untried = front.is_untried and started == 0
  local goes_on = front.is_cut or front.length > front.from_ready
  local more = goes_on or front.ranked_left or #due.all > started
    or (next_due and next_due <= now)

  -- Returns whether the ready list has grown.
  local function write()
    remove_due(queue.delayed, #due.delayed)
    remove_due(queue.retry, #due.retry)
    if due.joins then
      write_joins(due.joins, now)
    end
    if due.write_gathered then
      due.write_gathered()
    end
    if started < #due.all then
      local rest = started == 0 and due.all or { unpack(due.all, started + 1) }
      local rest_ranks = due.ranks and { unpack(due.ranks, started + 1, #due.all) }
      add_ready(queue.ready, queue.priority, queue.wake, rest, rest_ranks, now)
    end
    if #front.unranked > 0 then
      redis.call('ZREM', queue.priority, unpack(front.unranked))
    end
    return started < #due.all
  end
  local function strike()
    strike_off(queue.skips, queue.meta, front.passed, front.skip)
  end
  return ids, front.from_ready, goes_on, more, next_due, write, strike
end
