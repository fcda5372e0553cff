-- await: registers a client as waiting for a task's end, or tells that it has ended
--
-- One step, so that an end between the look and the registration can't be missed. An empty client
-- only looks, and is told where a task is that has not ended; for who waits, `open` is enough, and
-- takes as long beside a thousand workers as beside one.
--
-- Whatever has not succeeded has its record, so a task that this history has stored and that has
-- none any more has succeeded, unless it was purged. That it was stored is known from the ledger of
-- its client, if that is who asks.
--
-- KEYS   the naming block, of which who waits passes seven
-- ARGV   1 id · 2 client · 3 number of the call that submitted it, or '' · 4 its ledger slot
-- REPLY  OK, the state; for a success, what it returned: '' if nothing is kept, left out if it is
--        too large to pass through here

local meta, tasks, dead, cancelled = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local success, waiters, ledger = KEYS[5], KEYS[6], KEYS[7]
local delayed, retry, workers = KEYS[8], KEYS[9], KEYS[10]
local id, client, number, slot = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local RESULT_MAX = 16384

-- Checks.
if redis.call('HEXISTS', tasks, id) == 0 then
  local result = derive(meta, 'result', id)
  local size = redis.call('STRLEN', result)
  if size > RESULT_MAX then
    return { 'OK', 'success' }
  elseif size > 0 then
    return { 'OK', 'success', redis.call('GET', result) }
  elseif was_stored(ledger, slot, number) and not was_purged(meta, id)
    or summary_of(success, id) then
    return { 'OK', 'success', '' }
  end
  return { 'OK', 'forgotten' }
elseif client == '' then
  return { 'OK', (find({ meta = meta, tasks = tasks, delayed = delayed, retry = retry, dead = dead,
    cancelled = cancelled, workers = workers, success = success }, id)) }
elseif redis.call('ZSCORE', dead, id) then
  return { 'OK', 'dead' }
elseif redis.call('ZSCORE', cancelled, id) then
  return { 'OK', 'cancelled' }
end
local clients = redis.call('HGET', waiters, id)
if clients and string.find(',' .. clients .. ',', ',' .. client .. ',', 1, true) then
  return { 'OK', 'open' }
end

-- Writes.
redis.call('HDEL', waiters, '')
redis.call('HSET', waiters, id, clients and clients .. ',' .. client or client)
return { 'OK', 'open' }
