-- complete_ends: what successes mean for others: clients that wait, limits, tasks that wait.

-- `seen` is what `look_at` returns. `biz` has the marks of the biz ids, and `handed` the results
-- and the members of groups.
local function ends_of(base, waiters, seen, ids, biz, now, handed)
  local meta, found = base .. 'meta', seen.found
  local queue = { meta = meta, cancel = base .. 'cancel', waiters = waiters }
  local ends = { queue = queue, stale = seen.stale }
  if seen.has_endings then
    ends.endings = endings_of(queue, ids)
    for i, id in ipairs(ids) do
      local at = biz.of and biz.of[id]
      note_end(ends.endings, i, id, 'success', nil, at and biz.keys[at], at and biz.marks[at])
    end
  end
  ends.back = found.permits and permits_of(meta, ids)
  if seen.has_flow then
    local flow_of_success
    flow_of_success, ends.write_flow = waiting()
    ends.flow = flow_of_success(meta, seen, ids, biz, handed, now)
  end
  return ends
end

-- Returns the reply, which says whether effects for a relay were posted.
local function write_success_ends(ends, reply, now)
  if ends.endings then
    write_ends(ends.queue, ends.endings, now)
  end
  if #ends.stale > 0 then
    redis.call('HDEL', ends.queue.waiters, unpack(ends.stale))
  end
  if ends.flow then
    ends.write_flow(ends.flow, now)
    reply = with_out(reply, ends.flow)
  end
  -- Last, because `due_next` is included twice, and no time that the flow writes is before now.
  if ends.back then
    give_back(ends.back, now)
  end
  return reply
end
