-- apply: effects of an outbox on this queue: Blocked → Ready | Delayed | Cancelled
--
-- A relay carries effects from the outbox of a queue, which may be this one. The script ignores
-- those that it has applied before, so two relays, and a relay that repeats a call, change nothing.
-- It stops after some work; the relay removes what was applied and sends the rest again.
--
-- KEYS   the naming block
-- ARGV   1 now override · 2 the queue of the outbox · `<number> <effect>`… in their order
--        effect: `ask <id><mark> <reference>`, a task there waits for one here · `drop <id><mark>
--        <reference>`, it no longer does · `met <id><mark>`, a task here waited for one there that
--        has succeeded · `ended <id><mark> <state>`, which has ended otherwise · `end <state>
--        <after> <reference>`, a task here has ended, and those who wait for it learn of it; if
--        they are many, those above the score `after`
-- REPLY  OK, the last number that was applied, '1' if effects were posted
-- REFUSE NEWER with the required number

local meta, applied, tasks, cancelled = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local cancel, waiters = KEYS[5], KEYS[6]
local now, source = now_ms(ARGV[1]), ARGV[2]
local WORK_MAX, TURN = 256, 128

-- Checks.
local needs = redis.call('HGET', meta, 'needs')
if needs and tonumber(needs) > NEEDS_KNOWN then
  return { 'NEWER', needs }
end
local done = tonumber(redis.call('HGET', applied, source) or 0)
local flow = flow_of_ends(meta, NEEDS_OF_AFTER)
local queue = { meta = meta, cancelled = cancelled, cancel = cancel, waiters = waiters,
  flow = flow }
-- Those who ask in this call must learn of its ends, too.
flow.ends, flow.has_ties = {}, true
redis.call('HLEN', tasks)
read_waits(flow)

-- One who waits for a task here learns that it has ended.
local function tell(ref, waiter, state)
  local id, mark, home = string.sub(waiter, 1, 22), string.sub(waiter, 23, 23),
    string.sub(waiter, 25)
  if state ~= 'success' and home ~= '' then
    post(flow, home, 'ended ' .. id .. mark .. ' ' .. state)
  elseif state ~= 'success' then
    answer(flow, id, mark, state)
  else
    untie(flow, ref, waiter)
    if home ~= '' then
      post(flow, home, 'met ' .. id .. mark)
    else
      strike(flow, id, mark)
    end
  end
end

-- Whether a task that has ended runs again, or another one has its biz id. Its next end is told.
local function goes_on(ref)
  local is_key = string.find(ref, ':', 1, true)
  local state = is_key and state_of_key(flow, ref, now) or state_of_id(flow, ref)
  return state == 'met' or state == 'open' and not flow.is_gone[ref]
end

-- Tells some of those who wait. Returns how many.
local function tell_all(state, after, ref)
  if state ~= 'success' and goes_on(ref) then
    return 0
  end
  local value, told, last = cached(flow.ties, flow.ties_key, ref), {}, nil
  if value == '*' then
    local found = redis.call('ZRANGEBYSCORE', many_of(flow, ref).key, '(' .. after, '+inf',
      'WITHSCORES', 'LIMIT', '0', whole(TURN))
    for i = 1, #found, 2 do
      told[#told + 1], last = found[i], found[i + 1]
    end
  else
    for waiter in string.gmatch(value or '', '%S+') do
      told[#told + 1] = waiter
    end
  end
  for _, waiter in ipairs(told) do
    tell(ref, waiter, state)
  end
  if value == '*' and #told == TURN then
    post(flow, flow.own, 'end ' .. state .. ' ' .. last .. ' ' .. ref)
  end
  return #told
end

-- One elsewhere waits for a task here.
local function asked(waiter, ref)
  local state, asker = states_of_refs(flow, { ref }, now)[1], waiter .. '@' .. source
  if state == 'met' then
    untie(flow, ref, asker)
    post(flow, source, 'met ' .. waiter)
    return
  end
  tie(flow, ref, asker)
  if state ~= 'open' then
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
      strike(flow, string.sub(word, 1, 22), string.sub(word, 23))
    elseif verb == 'ended' then
      answer(flow, string.sub(word, 1, 22), string.sub(word, 23), rest)
    elseif verb == 'ask' then
      asked(word, rest)
    elseif verb == 'drop' then
      untie(flow, rest, word .. '@' .. source)
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
local endings = unmet_ends(flow, queue, 'cancelled', now)
read_free(flow, now)
local posts = #flow.targets > 0 and '1' or '0'

-- Writes.
redis.call('HDEL', applied, '')
redis.call('HSET', applied, source, whole(last))
mark_ties(flow)
write_unmet_ends(flow, queue, endings, now)
write_free(flow, now)
if flow.needs < NEEDS_OF_AFTER then
  redis.call('HSET', meta, 'needs', NEEDS_OF_AFTER)
end
return { 'OK', whole(last), posts }
