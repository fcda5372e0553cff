-- await: registers a client as waiting for a task's end, or tells that it has ended
--
-- One step, so that an end between the look and the registration can't be missed. An empty client
-- only looks.
--
-- KEYS   the naming block
-- ARGV   1 id · 2 client
-- REPLY  OK, the state

local meta, tasks, delayed, retry, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local cancelled, workers, success, waiters = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local id, client = ARGV[1], ARGV[2]

-- Checks.
local state = find({ meta = meta, tasks = tasks, delayed = delayed, retry = retry, dead = dead,
  cancelled = cancelled, workers = workers, success = success }, id)
if client == '' or state == 'success' or state == 'dead' or state == 'cancelled'
  or state == 'forgotten' then
  return { 'OK', state }
end
local clients = redis.call('HGET', waiters, id)
if clients and string.find(',' .. clients .. ',', ',' .. client .. ',', 1, true) then
  return { 'OK', state }
end

-- Writes.
redis.call('HDEL', waiters, '')
redis.call('HSET', waiters, id, clients and clients .. ',' .. client or client)
return { 'OK', state }
