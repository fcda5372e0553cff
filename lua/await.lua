-- await: registers a client as waiting for a task's end, or reports that the task has ended
--
-- The check and the registration are one step, so the client cannot miss an end between them. With
-- an empty client the script only checks, and the reply names the state of a task that has not
-- ended. For a waiting client, `open` is enough. It takes the same time with a thousand workers as
-- with one.
--
-- A task that has not succeeded has its record. So a task that this history has stored and that has
-- no record any more has succeeded, unless it was purged or deleted. The ledger of the client that
-- submitted the task shows that the task was stored, if that client calls.
--
-- Further tasks follow the first one: the client submitted them and may wait for them next. For
-- those only a success is reported, because every other end can be undone.
--
-- KEYS   the naming block; a waiting client passes seven of it
-- ARGV   1 client · (id · number of the call that submitted it, or '' · its ledger slot)…
-- REPLY  OK, then two words for each task: its state, `open` if it has not ended, `large` for a
--        success whose result this script does not return; and the result of a success, '' if none
--        is kept

local meta, tasks, dead, cancelled = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local success, waiters, ledger = KEYS[5], KEYS[6], KEYS[7]
local delayed, retry, workers = KEYS[8], KEYS[9], KEYS[10]
local client, id, number, slot = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local RESULT_MAX, REPLY_MAX, WAITING_MAX = 16384, 262144, 32768

-- Checks.
local passed, proven, removed = 0, {}, {}

-- Returns the two words for a task that has no record and is known to have succeeded.
local function success_of(task, call, call_slot)
  local result = key_of(meta, 'result', task)
  local size = redis.call('STRLEN', result)
  if size > RESULT_MAX or passed + size > REPLY_MAX then
    return 'large', ''
  elseif size > 0 then
    passed = passed + size
    return 'success', redis.call('GET', result)
  end
  if proven[call] == nil then
    proven[call] = was_stored(ledger, call_slot, call)
  end
  if proven[call] and not was_removed(meta, task, removed) then
    return 'success', ''
  end
  return nil
end

local word, returned, registered = 'open', '', true
if redis.call('HEXISTS', tasks, id) == 0 then
  word, returned = success_of(id, number, slot)
  if not word then
    word, returned = summary_of(success, id) and 'success' or 'forgotten', ''
  end
elseif client == '' then
  word = find({ meta = meta, tasks = tasks, delayed = delayed, retry = retry, dead = dead,
    cancelled = cancelled, workers = workers, success = success }, id)
elseif redis.call('ZSCORE', dead, id) then
  word = 'dead'
elseif redis.call('ZSCORE', cancelled, id) then
  word = 'cancelled'
else
  local clients = redis.call('HGET', waiters, id) or nil
  registered = clients and string.find(',' .. clients .. ',', ',' .. client .. ',', 1, true)
  if clients and #clients > WAITING_MAX then
    -- Clients that have ended stay in the list until the task ends. Beyond the limit, the first
    -- client is removed. It finds the end with its own check.
    clients = string.match(clients, ',(.*)$') or clients
  end
  client = clients and clients .. ',' .. client or client
end
local reply = { 'OK', word, returned }
for at = 5, #ARGV, 3 do
  word, returned = nil, ''
  if redis.call('HEXISTS', tasks, ARGV[at]) == 0 then
    word, returned = success_of(ARGV[at], ARGV[at + 1], ARGV[at + 2])
  end
  reply[#reply + 1], reply[#reply + 2] = word or 'open', returned or ''
end

-- Writes.
if not registered then
  redis.call('HDEL', waiters, '')
  redis.call('HSET', waiters, id, client)
end
return reply
