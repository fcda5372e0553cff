-- fail: Working → Retry | Dead | Cancelled, up to 128
--
-- The script ends attempts that did not succeed, each only if the caller still holds it under its
-- token. The worker decides the outcome, because it knows the retry policy. However, a task that
-- was asked to stop is cancelled, whatever the worker decided. A task that ends passes the permit
-- of its lane on, unless it is dead and blocks its lane. A task that is retried does so if its lane
-- has more than one permit. If a task that ends leads a run and has not collected the others, the
-- next one leads at once. A task that was not started in time gives its tokens of limits back. An
-- attempt is lost if the worker's own process was stopped for so long that its lease may have been
-- over. It counts as in `reap`, and as there its task is dead if it ran alone and may have no more
-- losses.
--
-- KEYS   the naming block
-- ARGV   those of a report; columns: outcome; error as JSON or ''
--        outcome: the ms until another attempt · `dead` · `expired`: dead, because no worker
--        started the task in time, which never blocks its lane · `cancelled` · `unstarted`: the
--        same, because no worker started it in time · `lost`: another attempt at once, and a loss
--        instead of a failure; after the first two, `;<queue | task | lane | limit>:<ms>:<task>`,
--        a line break and why shut that gate of the task for a while
-- REPLY  OK, then the position of each report whose lease belongs to another worker, and
--        `<position>=cancelled` for each task that is cancelled instead and `<position>=dead` for
--        each one that its loss marks Dead, then `out` if effects for a relay were posted

local meta, tasks, working, retry, dead, cancelled = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5],
  KEYS[6]
local tries, errors, cancel, waiters, wake = KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11]
local now = now_ms(ARGV[1])
local now_text = whole(now)
local queue = { meta = meta, dead = dead, cancelled = cancelled, cancel = cancel,
  waiters = waiters }

-- Checks.
local held, reply, first_id, count = still_held(working, 2)
if held and #held == 0 then
  return reply
end
local ids = column(first_id, count, held)
-- The places before the columns of outcomes and errors, which need no lists of their own.
local ARGV, before_outcomes, before_errors = ARGV, first_id + count - 1, first_id + 2 * count - 1
local tried = redis.call('HLEN', tries)
local counts = tried > 0 and redis.call('HMGET', tries, unpack(ids)) or {}
-- A task without counts has no errors, so most calls read none.
local histories = redis.call('HLEN', errors) > 0 and is_any(counts)
  and redis.call('HMGET', errors, unpack(ids)) or {}
local due_hint, moves, lane_report, pass_permits, write_moves, needs = due_and_lanes(meta, laned)
local shuts, permits = {}, permits_of(meta, ids)
local retried = redis.call('ZCARD', retry)
redis.call('LLEN', wake)
if needs >= NEEDS_OF_AFTER then
  queue.flow = waiting()(meta, needs)
end
local led, leave_gathers = nil, nil
if needs >= NEEDS_OF_GATHER then
  local leaders_of, leave = leading()
  led, leave_gathers = leaders_of(meta, tasks, ids, counts), leave
end
local endings = endings_of(queue, ids)
local due, due_first, now_counts, now_histories, deaths = {}, nil, {}, {}, nil
local unbegun = {}
-- The instants by wait: many tasks of a call have the same wait, and formatting an instant is
-- expensive.
local due_texts = {}
-- How many values `now_histories` and `due` have: `#` searches for the end of a table.
local told, later = 0, 0
-- The tries of a task with one failure.
local FIRST = '1:0:0'
local FIRST_LOST = '0:1:0'
local lost, lost_again, is_alone, dies_of_loss = 0, 0, nil, nil
for i = 1, #ids do
  local id, position, kept, history = ids[i], held and held[i] or i, 1, nil
  local verdict, entry = ARGV[before_outcomes + position], ARGV[before_errors + position]
  -- A wait that another task of the call has names no gate.
  local due_text = due_texts[verdict]
  local shuts_at = not due_text and string.find(verdict, ';', 1, true)
  if shuts_at then
    local scope, wait, why = string.match(verdict, '^;(%a+):(%d+):(.*)$', shuts_at)
    add_shut(shuts, meta, redis.call('HGET', tasks, id), scope, tonumber(wait), why, now)
    verdict = string.sub(verdict, 1, shuts_at - 1)
    due_text = due_texts[verdict]
  end
  local record = moves and redis.call('HGET', tasks, id)
  local is_lost = verdict == 'lost'
  if is_lost then
    if not dies_of_loss then
      is_alone, dies_of_loss = losing()
    end
    local _, losses = tries_of(counts[i])
    local header = header_of(redis.call('HGET', tasks, id))
    lost = lost + 1
    verdict = dies_of_loss(header, losses + 1, is_alone(working)) and 'dead' or '0'
    due_text = due_texts[verdict]
  end
  -- The calls of a run have no tokens of their own.
  local unstarted = (verdict == 'expired' or verdict == 'unstarted')
    and redis.call('HGET', tasks, id)
  if unstarted and type(header_of(unstarted).ga) ~= 'string' then
    unbegun[#unbegun + 1] = unstarted
  end
  if verdict == 'unstarted' then
    verdict = 'cancelled'
  end
  if entry ~= '' then
    history = histories[i] and errors_with(histories[i], now_text, entry)
      or now_text .. ' ' .. entry
    now_histories[told + 1], now_histories[told + 2] = id, history
    told = told + 2
  end
  if verdict == 'cancelled' or endings.intents[i] then
    note_cancelled(queue, endings, i, id, header_of(redis.call('HGET', tasks, id)), history)
    if record then
      lane_report(moves, id, record, 'cancelled')
    end
    if verdict ~= 'cancelled' then
      reply = reply == 'OK' and { 'OK' } or reply
      reply[#reply + 1] = position .. '=cancelled'
    end
  elseif verdict == 'dead' or verdict == 'expired' then
    note_end(endings, i, id, 'dead', history)
    if is_lost then
      reply = reply == 'OK' and { 'OK' } or reply
      reply[#reply + 1] = position .. '=dead'
    end
    deaths = deaths or dying()(meta, now)
    deaths.note(id, history, working)
    if record then
      lane_report(moves, id, record, verdict)
    end
  else
    if record then
      lane_report(moves, id, record, 'later')
    end
    if not due_text then
      local due_at = now + tonumber(verdict)
      due_text = whole(due_at)
      due_texts[verdict] = due_text
      due_first = math.min(due_first or due_at, due_at)
    end
    kept = 0
    lost_again = lost_again + (is_lost and 1 or 0)
    due[later + 1], due[later + 2] = due_text, id
    later = later + 2
  end
  now_counts[2 * i - 1] = id
  if is_lost then
    now_counts[2 * i] = tries_after(counts[i], FIRST_LOST, 0, 1, kept)
  else
    now_counts[2 * i] = counts[i] and tries_after(counts[i], FIRST, 1, 0, kept) or FIRST
  end
end
if moves then
  pass_permits(moves)
end
if deaths then
  deaths.read()
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
hset_as_table(tries, tried, now_counts)
if told > 0 then
  redis.call('HSET', errors, unpack(now_histories))
end
if later > 0 then
  zadd_as_table(retry, retried, due)
end
if later / 2 > lost_again then
  redis.call('HINCRBY', meta, 'retries', whole(later / 2 - lost_again))
end
if lost > 0 then
  redis.call('HINCRBY', meta, 'losses', whole(lost))
end
write_ends(queue, endings, now)
if deaths then
  deaths.write()
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
if shuts.key then
  write_shuts(shuts, meta)
end
return queue.flow and with_out(reply, queue.flow) or reply
