-- count: how many tasks are in each state, at one moment
--
-- KEYS   the naming block
-- ARGV   none
-- REPLY  OK, ready, delayed, blocked, retry, working, dead, cancelled, summaries of successes,
--        bytes of dead and bytes of cancelled tasks, tasks removed without a success, 1 if paused;
--        so far: successes, retries, losses, deaths, cancels

local meta, ready, priority, delayed, retry = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local dead, cancelled, success, workers, unmet = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]

-- Checks.
local noted = redis.call('HMGET', meta, 'tombstones', 'blocked', 'dead_bytes', 'cancelled_bytes',
  'purged', 'paused', 'cut_successes', 'retries', 'losses', 'deaths', 'cancels')
local summaries = redis.call('LLEN', success)
local listed = redis.call('LLEN', ready) + redis.call('ZCARD', priority)
local working = 0
for _, worker in ipairs(redis.call('ZRANGE', workers, 0, -1)) do
  -- One field holds the worker's last claim.
  working = working + math.max(0, redis.call('HLEN', key_of(meta, 'working', worker)) - 1)
end
return { 'OK', math.max(0, listed - (noted[1] or 0)), redis.call('ZCARD', delayed),
  (noted[2] or 0) + redis.call('HLEN', unmet), redis.call('ZCARD', retry), working,
  redis.call('ZCARD', dead), redis.call('ZCARD', cancelled), summaries,
  noted[3] or 0, noted[4] or 0, noted[5] or 0, noted[6] and 1 or 0,
  (noted[7] or 0) + summaries, noted[8] or 0, noted[9] or 0, noted[10] or 0, noted[11] or 0 }
