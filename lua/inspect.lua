-- inspect: reads one task: its state and all its data
--
-- KEYS   the naming block
-- ARGV   1 id
-- REPLY  OK, state, worker that holds it, ms when it is due or ended, record, blob, tries, errors,
--        token, summary of a success, log,
--        ms when a worker was asked to stop it

local meta, tasks, delayed, retry, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local cancelled, workers, success, blobs = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local tries, errors, logs, cancel = KEYS[10], KEYS[11], KEYS[12], KEYS[13]
local id = ARGV[1]

-- Checks.
local state, holder, at = find({ meta = meta, tasks = tasks, delayed = delayed, retry = retry,
  dead = dead, cancelled = cancelled, workers = workers, success = success }, id)
local token, summary, asked = '', '', ''
if holder ~= '' then
  token = redis.call('HGET', key_of(meta, 'working', holder), id)
  asked = redis.call('HGET', cancel, id) or ''
end
if state == 'success' then
  summary = summary_of(success, id) or ''
  at = string.match(summary, '^%S+ (%d+)') or ''
end
return { 'OK', state, holder, at,
  redis.call('HGET', tasks, id) or '', redis.call('HGET', blobs, id) or '',
  redis.call('HGET', tries, id) or '', redis.call('HGET', errors, id) or '', token, summary,
  redis.call('HGET', logs, id) or '', asked }
