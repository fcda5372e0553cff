-- complete_ends: what successes mean for others: clients that wait, limits, tasks that wait.

-- Returns which of these keys have content, by the marks in `waiters`, and the marks of those that
-- have none.
local function marked_in(base, waiters, names)
  local fields, found, stale = {}, {}, {}
  for i, name in ipairs(names) do
    fields[i] = '#' .. name
  end
  for i, is_set in ipairs(redis.call('HMGET', waiters, unpack(fields))) do
    if is_set and redis.call('HLEN', base .. names[i]) > 0 then
      found[names[i]] = true
    elseif is_set then
      stale[#stale + 1] = fields[i]
    end
  end
  return found, stale
end

-- `biz` has the marks of the biz ids, and `handed` the results and the members of groups.
local function ends_of(base, waiters, ids, biz, now, handed)
  local meta = base .. 'meta'
  local found, stale = marked_in(base, waiters, { 'cancel', 'permits', 'ties' })
  local queue = { meta = meta, cancel = base .. 'cancel', waiters = waiters }
  local ends = { queue = queue, endings = endings_of(queue, ids), stale = stale }
  for i, id in ipairs(ids) do
    local at = biz.of and biz.of[id]
    note_end(ends.endings, i, id, 'success', nil, at and biz.keys[at], at and biz.marks[at])
  end
  ends.back = found.permits and permits_of(meta, ids)
  local members = handed.members
  if found.ties or members and #members.there > 0 then
    local flow_of_success
    flow_of_success, ends.write_flow = waiting()
    ends.flow = flow_of_success(meta, ids, biz.of, biz.keys, handed.results, members, now)
  end
  return ends
end

-- Returns the reply, which says whether effects for a relay were posted.
local function write_success_ends(ends, reply, now)
  write_ends(ends.queue, ends.endings, now)
  if #ends.stale > 0 then
    redis.call('HDEL', ends.queue.waiters, unpack(ends.stale))
  end
  if ends.back then
    give_back(ends.back, now)
  end
  if ends.flow then
    ends.write_flow(ends.flow, now)
    reply = with_out(reply, ends.flow)
  end
  return reply
end
