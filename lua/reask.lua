-- reask: asks again for prerequisites elsewhere that are not met; Blocked → Dead, after a task's
-- `give_up_after`
--
-- The outbox is only the fast way: a failover of either queue can lose an effect. So each task asks
-- again, after a minute at first, and then after as long as it exists, up to an hour.
--
-- KEYS   the naming block
-- ARGV   1 now override
-- REPLY  OK, how many tasks asked or gave up, '1' if effects were posted, ms until the next asks or
--        gives up, -1 if none waits
-- REFUSE NEWER with the required number

local meta, asks, giveups, tasks, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local cancel, waiters = KEYS[6], KEYS[7]
local now = now_ms(ARGV[1])
local TURN, ASK_MIN_MS, ASK_MAX_MS = 64, 60000, 3600000

-- Checks.
local needs = redis.call('HGET', meta, 'needs')
if needs and tonumber(needs) > NEEDS_KNOWN then
  return { 'NEWER', needs }
end
local flow = flow_of_ends(meta, math.max(tonumber(needs or 1), NEEDS_OF_AFTER))
local queue = { meta = meta, dead = dead, cancel = cancel, waiters = waiters, flow = flow }
flow.ends = {}
local tired = redis.call('ZRANGEBYSCORE', giveups, '-inf', whole(now), 'LIMIT', '0', whole(TURN))
local asking = redis.call('ZRANGEBYSCORE', asks, '-inf', whole(now), 'LIMIT', '0', whole(TURN))

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
local again, next_at = {}, nil
for _, id in ipairs(asking) do
  local value = cached(flow.unmet, flow.unmet_key, id)
  if value then
    local header = header_of(redis.call('HGET', tasks, id))
    for mark in string.gmatch(parts_of(value), '.') do
      local home, ref = ref_of(header, mark)
      if home ~= flow.own and home ~= '' then
        post(flow, home, 'ask ' .. id .. mark .. ' ' .. ref)
      end
    end
    local age = now - born_ms(id)
    local at = now + math.max(ASK_MIN_MS, math.min(age, ASK_MAX_MS))
    again[#again + 1], again[#again + 2] = whole(at), id
    next_at = math.min(next_at or at, at)
  else
    flow.asks_gone[#flow.asks_gone + 1] = id
  end
end
local endings = unmet_ends(flow, queue, 'dead', now)
local is_posted = #flow.targets > 0
-- A time that is too early costs one call.
for key, count in pairs({ [asks] = #asking, [giveups] = #tired }) do
  local at = tonumber(redis.call('ZRANGE', key, whole(count), whole(count), 'WITHSCORES')[2])
  next_at = at and math.min(next_at or at, at) or next_at
end

-- Writes.
redis.call('ZREM', giveups, '')
if #again > 0 then
  redis.call('ZADD', asks, unpack(again))
end
write_unmet_ends(flow, queue, endings, now)
return { 'OK', whole(#tired + #asking), is_posted and '1' or '0',
  next_at and whole(math.max(0, next_at - now)) or '-1' }
