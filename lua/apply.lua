-- apply: effects of an outbox on this queue: Blocked → Ready | Delayed | Cancelled
--
-- A relay carries effects from the outbox of a queue, which may be this one. The script ignores
-- those that it has applied before, so two relays, and a relay that repeats a call, change nothing.
-- It stops after some work; the relay removes what was applied and sends the rest again.
--
-- KEYS   the naming block
-- ARGV   1 now override · 2 the queue of the outbox · `<number> <effect>`… in their order
--        effect: `ask <id><mark> <reference>`, a task there waits for one here · `tie <id><mark>
--        <reference>`, the same, but it asks later whether that one has ended otherwise · `drop
--        <id><mark> <reference>`, it no longer does · `seek <id><mark> <reference>`, it must not
--        wait on if that one is not there · `still <id><mark> <reference>`, does one here still
--        wait for one there · `met <id><mark> <result>`, a task here waited for one there
--        that has succeeded; the result is there if the task takes it · `ended <id><mark> <state>`,
--        which has ended otherwise · `member <group> <position> <state> <policy> <result>`, a
--        member of a group here has ended · `end <state> <after> <reference>`, a task here has
--        ended, and tasks that wait learn of it; if there are many, those above the score `after`.
--        A state is `success` · `dead` · `cancelled` · `forgotten`, it was deleted or its result is
--        gone · `void`, no requeue can change it
-- REPLY  OK, the last number that was applied, '1' if effects were posted
-- REFUSE NEWER with the required number

local meta, applied, tasks, cancelled = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local cancel, waiters = KEYS[5], KEYS[6]
local now, source = now_ms(ARGV[1]), ARGV[2]
local WORK_MAX, TURN = 256, 128
-- Copies of a result that one turn makes have about this many bytes at most.
local COPIED_MAX = 4194304

-- Checks.
local needs = redis.call('HGET', meta, 'needs')
if needs and tonumber(needs) > NEEDS_KNOWN then
  return { 'NEWER', needs }
end
local done = tonumber(redis.call('HGET', applied, source) or 0)
local version = math.max(tonumber(needs or 1), NEEDS_OF_AFTER)
local flow, results, groups = flow_of_ends(meta, version), {}, {}
local queue = { meta = meta, cancelled = cancelled, cancel = cancel, waiters = waiters,
  flow = flow }
-- Those who ask in this call must learn of its ends, too.
flow.ends, flow.has_ties = {}, true
redis.call('HLEN', tasks)
read_waits(flow)

-- The result of a success here, for tasks that take it, and the task that had it; nil if it is no
-- longer known.
local function result_of(ref)
  local found = results[ref]
  if not found then
    local base = flow.base
    local outcome = redis.call('GET', base .. 'outcome:' .. ref)
    local id = outcome and string.match(outcome, '^%S+')
    if not id and string.find(ref, ':', 1, true) then
      id = string.match(redis.call('GET', base .. 'biz:' .. ref) or '', '^([^:]*):')
    end
    id = id or ref
    local group = not outcome and group_of(base, id)
    local result = group and group_handle(flow, group)
      or redis.call('GET', base .. 'result:' .. id) or outcome and 'null' or nil
    found = { result, id }
    results[ref] = found
  end
  return found[1], found[2]
end

-- A task that waits for one here learns that it has ended.
local function tell(ref, waiter, state)
  local id, mark, home = string.sub(waiter, 1, 22), string.sub(waiter, 23, 23),
    string.sub(waiter, 25)
  local result, owner
  if state == 'success' and mark == TAKEN then
    result, owner = result_of(ref)
    state = result and state or 'forgotten'
  end
  if state ~= 'success' and home ~= '' then
    post(flow, home, 'ended ' .. id .. mark .. ' ' .. state)
  elseif state ~= 'success' then
    answer(flow, id, mark, state)
  else
    untie(flow, ref, waiter)
    if home ~= '' then
      post(flow, home, 'met ' .. id .. mark .. (result and ' ' .. result_word(owner, result) or ''))
    else
      strike(flow, id, mark, result)
    end
  end
end

-- How many tasks that wait learn of a success in one call. Each that takes the result gets a copy
-- of it.
local function told_at_once(ref, waiters)
  for _, waiter in ipairs(waiters) do
    if string.sub(waiter, 23, 23) == TAKEN then
      return math.max(1, math.floor(COPIED_MAX / (#(result_of(ref) or '') + 1)))
    end
  end
  return TURN
end

-- Whether a task that has ended runs again, or another one has its biz id: its next end counts.
local function goes_on(ref)
  local is_key = string.find(ref, ':', 1, true)
  local state = is_key and state_of_key(flow, ref, now) or state_of_id(flow, ref)
  return state == 'met' or state == 'open' and not flow.is_gone[ref]
end

-- Passes an end on to some of the tasks that wait. Returns to how many.
local function tell_all(state, after, ref)
  if state ~= 'success' and goes_on(ref) then
    return 0
  end
  local value, told, scores, last = cached(flow.ties, flow.ties_key, ref), {}, {}, '0'
  if value == '*' then
    local found = redis.call('ZRANGEBYSCORE', many_of(flow, ref).key, '(' .. after, '+inf',
      'WITHSCORES', 'LIMIT', '0', whole(TURN))
    for i = 1, #found, 2 do
      told[#told + 1], last = found[i], found[i + 1]
      scores[#told] = last
    end
  else
    for waiter in string.gmatch(value or '', '%S+') do
      told[#told + 1] = waiter
    end
  end
  local most, many = state == 'success' and told_at_once(ref, told) or TURN, #told == TURN
  for i, waiter in ipairs(told) do
    if i > most then
      last, many = scores[most] or '0', true
      break
    end
    tell(ref, waiter, state)
  end
  if value == '*' and many or #told > most then
    post(flow, flow.own, 'end ' .. state .. ' ' .. last .. ' ' .. ref)
  end
  return #told
end

-- One elsewhere waits for a task here.
local renewed = {}
local function asked(verb, waiter, ref)
  local state, asker = states_of_refs(flow, { ref }, now)[1], waiter .. '@' .. source
  if state == 'met' then
    tell(ref, asker, 'success')
    return
  end
  tie(flow, ref, asker)
  renewed[#renewed + 1], renewed[#renewed + 2] = whole(now), ref
  if state ~= 'open' and verb == 'ask' then
    post(flow, source, 'ended ' .. waiter .. ' ' .. state)
  end
end

local last, work = done, 0
for i = 3, #ARGV do
  local number, verb, word, rest = string.match(ARGV[i], '^(%d+) (%a+) (%S+) ?(.*)$')
  number = tonumber(number)
  if work >= WORK_MAX then
    break
  elseif number and number > last then
    last, work = number, work + 1
    if verb == 'met' then
      local id, mark = string.sub(word, 1, 22), string.sub(word, 23)
      if mark == TAKEN and rest == '' then
        -- The result was gone when the relay fetched it.
        answer(flow, id, mark, 'forgotten')
      else
        strike(flow, id, mark, string.sub(rest, 2))
      end
    elseif verb == 'ended' then
      answer(flow, string.sub(word, 1, 22), string.sub(word, 23), rest)
    elseif verb == 'ask' or verb == 'tie' then
      asked(verb, word, rest)
    elseif verb == 'seek' then
      if states_of_refs(flow, { rest }, now)[1] == 'open' and flow.is_gone[rest] then
        post(flow, source, 'ended ' .. word .. ' forgotten')
      end
    elseif verb == 'still' then
      local value = cached(flow.unmet, flow.unmet_key, string.sub(word, 1, 22))
      local waits = value and string.find(parts_of(value), string.sub(word, 23), 1, true)
      post(flow, source, (waits and 'ask ' or 'drop ') .. word .. ' ' .. rest)
    elseif verb == 'drop' then
      untie(flow, rest, word .. '@' .. source)
    elseif verb == 'member' then
      count_effect(flow, groups, word, rest, source)
    elseif verb == 'end' then
      local after, ref = string.match(rest, '^(%S+) (.*)$')
      work = work + tell_all(word, after, ref)
    end
  end
end
if last == done then
  -- The relay removes what was applied before.
  return { 'OK', whole(done), '0' }
end
tell_group_ends(flow, groups)
if #renewed > 0 then
  redis.call('ZCARD', flow.base .. 'asked')
end
local endings = unmet_ends(flow, queue, 'cancelled', now)
read_free(flow, now)
local posts = #flow.targets > 0 and '1' or '0'

-- Writes.
redis.call('HDEL', applied, '')
redis.call('HSET', applied, source, whole(last))
mark_ties(flow)
if #renewed > 0 then
  redis.call('ZADD', flow.base .. 'asked', unpack(renewed))
end
write_unmet_ends(flow, queue, endings, now)
write_free(flow, now)
write_counts(flow, groups, now)
if flow.needs < NEEDS_OF_AFTER then
  redis.call('HSET', meta, 'needs', NEEDS_OF_AFTER)
end
return { 'OK', whole(last), posts }
