-- operation_add: stores a new operation on many tasks, whose tasks are counted first
--
-- It removes the oldest operations that are over, or that nobody has confirmed, so that no more
-- than a fixed number is kept. Those that match no task leave first.
--
-- KEYS   the naming block
-- ARGV   1 now override · 2 id · 3 what it is about, as JSON · 4 how many to keep · 5 why
-- REPLY  OK, the ms when it was added
-- REFUSE WRONG_STATE with the state that too many others have

local operations, carried, operation = KEYS[1], KEYS[2], KEYS[3]
local now, id, about, most, why = now_ms(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]
local RESTS = { counted = true, done = true, cancelled = true, failed = true }

-- Checks.
local known = redis.call('HMGET', operation, 'added', 'about')
if known[1] then
  return known[2] == about and { 'OK', known[1] } or { 'WRONG_STATE', 'running' }
end
local others = redis.call('ZCARD', operations)
local excess, leave = others + 1 - most, {}
if excess > 0 then
  local base, empty, rest = string.sub(operations, 1, -11), {}, {}
  for _, name in ipairs(redis.call('ZRANGE', operations, 0, most - 1)) do
    local key = base .. 'operation:' .. name
    local facts = redis.call('HMGET', key, 'state', 'matched')
    if not facts[1] or RESTS[facts[1]] then
      local list = facts[2] == '0' and empty or rest
      list[#list + 1] = { name = name, key = key, counted = base .. 'counted:' .. name }
    end
  end
  for _, list in ipairs({ empty, rest }) do
    for _, one in ipairs(list) do
      if #leave < excess then
        redis.call('HLEN', one.counted)
        leave[#leave + 1] = one
      end
    end
  end
  if #leave == 0 then
    return { 'WRONG_STATE', 'running' }
  end
end
redis.call('ZCARD', carried)

-- Writes.
redis.call('ZREM', carried, '')
for _, gone in ipairs(leave) do
  redis.call('UNLINK', gone.key, gone.counted)
end
redis.call('HSET', operation, 'state', 'counting', 'about', about, 'added', whole(now), 'changed',
  whole(now), 'matched', '0', 'fence', '0', 'why', why)
redis.call('ZADD', operations, whole(now), id)
redis.call('ZADD', carried, whole(now), id)
for _, gone in ipairs(leave) do
  redis.call('ZREM', operations, gone.name)
  redis.call('ZREM', carried, gone.name)
end
return { 'OK', whole(now) }
