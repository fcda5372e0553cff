-- leave: a worker of this queue → ∅
--
-- The last word of a worker that has reported or given back all that it held. One that still holds
-- something stays registered, and the reaper collects it.
--
-- KEYS   the naming block
-- ARGV   1 worker
-- REPLY  OK, how many tasks it still holds

local workers, worker_info, working = KEYS[1], KEYS[2], KEYS[3]
local worker = ARGV[1]

-- Checks.
local held = count_held(working)
redis.call('ZCARD', workers)
redis.call('HLEN', worker_info)
if held > 0 then
  return { 'OK', held }
end

-- Writes.
redis.call('ZREM', workers, worker)
redis.call('UNLINK', worker_info, working)
return { 'OK', '0' }
