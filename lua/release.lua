-- release: Working → Ready | Delayed, up to 128, without using an attempt
--
-- The script gives tasks back, each only if the caller still holds it under its token: to the head
-- of the ready list (shutdown), or for later (a snooze, or a misfit, which the script counts). A
-- task that was asked to stop is cancelled instead. A task that was started can no longer expire,
-- and its earlier misfits no longer count. A task that is given back for later passes the permit of
-- its lane on, if the lane has more than one. At the head of the ready list it keeps the permit.
-- If a task leads a run and has not collected the others, the next one leads at once. A task that
-- has not begun gives its tokens of limits back.
--
-- KEYS   the naming block
-- ARGV   those of a report; column: how
--        how: `head:` · `interrupted:`, to the head after it was started · `snooze:<ms>` ·
--        `misfit:<ms>`
-- REPLY  OK, then the position of each task whose lease belongs to another worker, and
--        `<position>=cancelled` for each task that is cancelled instead, then `out` if effects for
--        a relay were posted

local meta, tasks, working, ready, priority = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local priorities, delayed, cancelled, tries = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local cancel, waiters, wake = KEYS[10], KEYS[11], KEYS[12]
local now = now_ms(ARGV[1])
local queue = { meta = meta, cancelled = cancelled, cancel = cancel, waiters = waiters }

-- Checks.
local held, reply, first_id, count = still_held(working, 1)
if held and #held == 0 then
  return reply
end
local ids, hows = column(first_id, count, held), column(first_id + count, count, held)
local ranks = priorities_of(priorities, ids)
local counts, tried = redis.call('HMGET', tries, unpack(ids)), redis.call('HLEN', tries)
local due_hint, moves, lane_report, pass_permits, write_moves, needs = due_and_lanes(meta, laned)
if needs >= NEEDS_OF_AFTER then
  queue.flow = waiting()(meta, needs)
end
local gathers, led, leave_gathers = nil, nil, nil
if needs >= NEEDS_OF_GATHER then
  local gathers_again, leaders_of, leave = leading()
  gathers, leave_gathers = gathers_again, leave
  led = leaders_of(meta, tasks, ids, counts)
end
local permits = permits_of(meta, ids)
local later = redis.call('ZCARD', delayed)
redis.call('ZCARD', priority)
redis.call('LLEN', ready)
redis.call('LLEN', wake)
local records = redis.call('HMGET', tasks, unpack(ids))
local endings = endings_of(queue, ids)
local back, back_ranks, due, due_first, now_counts = {}, ranks and {}, {}, nil, {}
local unbegun = {}
for i = 1, #ids do
  local id, how, value = ids[i], string.match(hows[i], '^(%a+):(.*)$')
  local failures, losses, misfits, start_by = tries_of(counts[i])
  -- A record that begins with its stamp belongs to a task that can expire.
  local can_expire = records[i] and string.sub(records[i], 1, 1) ~= '{'
  local now_count = nil
  if how == 'misfit' then
    now_count = tries_text(failures, losses, misfits + 1, start_by)
  elseif how ~= 'head' then
    -- Its counts show that a task which gathers has had a worker, so it joins the others soon.
    local starts = failures + losses == 0 and start_by ~= '0'
      and (can_expire or gathers and gathers(header_of(records[i]), losses))
    if starts or misfits > 0 then
      now_count = tries_text(failures, losses, 0, starts and '0' or start_by)
    end
  end
  if now_count and not endings.intents[i] then
    now_counts[#now_counts + 1] = id
    now_counts[#now_counts + 1] = now_count
  end
  if endings.intents[i] then
    note_cancelled(queue, endings, i, id, header_of(records[i]))
    if moves then
      lane_report(moves, id, records[i], 'cancelled')
    end
    reply = reply == 'OK' and { 'OK' } or reply
    reply[#reply + 1] = (held and held[i] or i) .. '=cancelled'
  elseif gathers and (how == 'head' or how == 'interrupted')
    and gathers(header_of(records[i]), losses) then
    -- The next claim lets it join those with which it runs.
    local due_at = math.min(born_ms(id), now)
    due[#due + 1] = whole(due_at)
    due[#due + 1] = id
    due_first = math.min(due_first or due_at, due_at)
  elseif how == 'head' or how == 'interrupted' then
    back[#back + 1] = id
    if back_ranks then
      back_ranks[#back] = ranks[i]
    end
    unbegun[#unbegun + 1] = how == 'head' and records[i] or nil
  else
    local due_at = now + tonumber(value)
    due[#due + 1] = whole(due_at)
    due[#due + 1] = id
    due_first = math.min(due_first or due_at, due_at)
    if moves then
      lane_report(moves, id, records[i], 'later')
    end
  end
end
if moves then
  pass_permits(moves)
end
local refunds, write_refunds = nil, nil
if #unbegun > 0 and needs >= NEEDS_OF_LIMITS then
  local refunds_of, write = refunding()
  refunds, write_refunds = refunds_of(meta, unbegun, now), write
end
if led and #led.due > 0 then
  due_first = math.min(due_first or now, now)
end

-- Writes.
redis.call('HDEL', working, unpack(ids))
if #now_counts > 0 then
  hset_as_table(tries, tried, now_counts)
end
if #due > 0 then
  zadd_as_table(delayed, later, due)
end
write_ends(queue, endings, now)
if #back > 0 then
  add_ready_again(ready, priority, wake, back, back_ranks, now)
end
if led then
  leave_gathers(led, now)
end
if due_first then
  due_at_latest(meta, wake, due_hint, due_first)
end
if moves then
  write_moves(moves, now)
end
if permits then
  give_back(permits, now)
end
if refunds then
  write_refunds(refunds, now)
end
return queue.flow and with_out(reply, queue.flow) or reply
