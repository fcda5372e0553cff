-- reask: asks again for prerequisites elsewhere that are not met; Blocked → Dead, after a task's
-- `give_up_after`
--
-- The outbox is only the fast way: a failover of either queue can lose an effect. So each task asks
-- again, after a minute at first, and then after as long as it exists, up to an hour. The other way
-- round, a queue asks those elsewhere who have not asked again for three hours whether they still
-- wait, so that no tie stays behind whose end was lost. `asked` has the references for which
-- others have asked, by the ms when that was.
--
-- A step of a flow is stored before the step that it follows. If that one is not there after a
-- day, its submitter has gone: no requeue can help, so the step is cancelled by its policy.
--
-- A task that an operation has requeued asks once the operation has reached all its tasks, is
-- cancelled, or fails: its carrier names it. It asks then for prerequisites in this queue, too,
-- because a task that it waits for may not be back.
--
-- KEYS   the naming block
-- ARGV   1 now override · ids of tasks that ask now, at most 64; without any, those whose time has
--        come
-- REPLY  OK, how many tasks asked or gave up, '1' if effects were posted, ms until the next asks or
--        gives up, -1 if none waits
-- REFUSE NEWER with the required number

local meta, asks, giveups, tasks, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local cancel, waiters = KEYS[6], KEYS[7]
local now = now_ms(ARGV[1])
local named = { select(2, unpack(ARGV)) }
local TURN, ASK_MIN_MS, ASK_MAX_MS = 64, 60000, 3600000
local SILENT_MS, TIED_MAX, STEP_MS = 10800000, 128, 86400000

-- Checks.
local needs = redis.call('HGET', meta, 'needs')
if needs and tonumber(needs) > NEEDS_KNOWN then
  return { 'NEWER', needs }
end
local flow = flow_of_ends(meta, math.max(tonumber(needs or 1), NEEDS_OF_AFTER))
local queue = { meta = meta, dead = dead, cancel = cancel, waiters = waiters, flow = flow }
flow.ends = {}
local tired = redis.call('ZRANGEBYSCORE', giveups, '-inf', whole(now), 'LIMIT', '0', whole(TURN))
local asking = #named > 0 and named
  or redis.call('ZRANGEBYSCORE', asks, '-inf', whole(now), 'LIMIT', '0', whole(TURN))

-- The first prerequisite that is not met, for the error.
local function gives_up(id, header)
  local marks = parts_of(cached(flow.unmet, flow.unmet_key, id) or '')
  local home, ref = ref_of(header, string.sub(marks, 1, 1))
  if leave_unmet(flow, id, header, true) then
    flow.ends[#flow.ends + 1] = { id = id, header = header, ref = home .. '/' .. ref,
      why = 'waiting' }
  else
    flow.giveups_gone[#flow.giveups_gone + 1] = id
  end
end

for _, id in ipairs(tired) do
  gives_up(id, header_of(redis.call('HGET', tasks, id)))
end

-- Asks for what a task waits for. Returns whether some of that is elsewhere, or not there yet.
local function ask(id, marks, is_step)
  local header, asks_on = header_of(redis.call('HGET', tasks, id)), false
  local is_late = is_step and now - born_ms(id) >= STEP_MS
  for mark in string.gmatch(marks, '.') do
    local home, ref = ref_of(header, mark)
    local follows = is_step and is_former(mark)
    if home == flow.own then
      local state = states_of_refs(flow, { ref }, now)[1]
      if follows and state == 'open' and flow.is_gone[ref] then
        state, asks_on = is_late and 'forgotten' or state, true
      end
      if state ~= 'open' and state ~= 'met' then
        post(flow, flow.own, 'ended ' .. id .. mark .. ' ' .. state)
      end
    elseif home ~= '' then
      post(flow, home, 'ask ' .. id .. mark .. ' ' .. ref)
      if follows and is_late then
        post(flow, home, 'seek ' .. id .. mark .. ' ' .. ref)
      end
      asks_on = true
    end
  end
  return asks_on
end

local again, next_at = {}, nil
for _, id in ipairs(asking) do
  local value = cached(flow.unmet, flow.unmet_key, id)
  local marks, _, flags = parts_of(value or '')
  if not value or not string.find(flags, 'e', 1, true) then
    flow.asks_gone[#flow.asks_gone + 1] = id
  elseif not ask(id, marks, string.find(flags, 's', 1, true)) then
    -- All is there, and in this queue, where no answer can be lost.
    flow.asks_gone[#flow.asks_gone + 1] = id
    change(flow.unmet, id, (string.gsub(value, 'e(%a*)$', '%1')))
  else
    local age = now - born_ms(id)
    local at = now + math.max(ASK_MIN_MS, math.min(age, ASK_MAX_MS))
    again[#again + 1], again[#again + 2] = whole(at), id
    next_at = math.min(next_at or at, at)
  end
end

-- Some of the tasks that wait for a reference. If there are many, another call reads others.
local function some_tied(ref, value)
  local tied = {}
  if value == '*' then
    local many = many_of(flow, ref)
    local first = now % math.max(many.size - TIED_MAX, 1)
    return redis.call('ZRANGE', many.key, whole(first), whole(first + TIED_MAX - 1))
  end
  for waiter in string.gmatch(value, '%S+') do
    tied[#tied + 1] = waiter
  end
  return tied
end

local asked_key = flow.base .. 'asked'
local asked = redis.call('ZRANGE', asked_key, '0', whole(TURN - 1), 'WITHSCORES')
local refs, silent, over = {}, {}, {}
for i = 1, #asked, 2 do
  refs[#refs + 1] = asked[i]
end
load(flow.ties, flow.ties_key, refs)
for i, ref in ipairs(refs) do
  local value, at = flow.ties.now[ref], tonumber(asked[2 * i])
  if not value then
    over[#over + 1] = ref
  elseif at <= now - SILENT_MS then
    for _, waiter in ipairs(some_tied(ref, value)) do
      if #waiter > 24 then
        post(flow, string.sub(waiter, 25), 'still ' .. string.sub(waiter, 1, 23) .. ' ' .. ref)
      end
    end
    silent[#silent + 1], silent[#silent + 2] = whole(now), ref
  else
    next_at = math.min(next_at or at + SILENT_MS, at + SILENT_MS)
  end
end
local endings = unmet_ends(flow, queue, 'dead', now)
local deaths
for i, ended in ipairs(flow.ends) do
  deaths = deaths or dying()(meta, now)
  deaths.note(ended.id, endings.histories[2 * i], nil)
end
if deaths then
  deaths.read()
end
local is_posted = #flow.targets > 0
-- A time that is too early costs one call.
local asked_first = #named > 0 and 0 or #asking
for key, count in pairs({ [asks] = asked_first, [giveups] = #tired }) do
  local at = tonumber(redis.call('ZRANGE', key, whole(count), whole(count), 'WITHSCORES')[2])
  next_at = at and math.min(next_at or at, at) or next_at
end

-- Writes.
redis.call('ZREM', giveups, '')
if #again > 0 then
  redis.call('ZADD', asks, unpack(again))
end
if #silent > 0 then
  redis.call('ZADD', asked_key, unpack(silent))
end
if #over > 0 then
  redis.call('ZREM', asked_key, unpack(over))
end
write_unmet_ends(flow, queue, endings, now)
if deaths then
  deaths.write()
end
return { 'OK', whole(#tired + #asking), is_posted and '1' or '0',
  next_at and whole(math.max(0, next_at - now)) or '-1' }
