-- worker_lease: which workers are alive. `workers` holds each worker's lease expiry; a heartbeat is
-- one write to it.
--
-- A worker that holds nothing has a longer lease if many workers serve the queue. So all of them
-- together send as few heartbeats as a few workers do. A fraction of half a ms marks such an
-- expiry: a claim that grants something gives its worker a usual lease instead.

-- Up to this many idle workers of a queue send heartbeats as often as workers that hold tasks. If
-- there are more, each sends fewer. So the queue gets 24 heartbeats in a lease, and half a lease
-- without one is an outage.
local OFTEN_MAX = 8
-- A long lease is at most this many usual leases.
local LONG_MAX = 10
-- A clock that is set back by less than this moves leases alone.
local BACK_MS = 1000

-- Returns the lease of a worker that holds `held` tasks, and when that lease is over.
local function lease_for(lease_ms, held, peers, now)
  local factor = math.min(peers / OFTEN_MAX, LONG_MAX)
  if held > 0 or factor <= 1 then
    return lease_ms, now + lease_ms
  end
  local long_ms = math.floor(lease_ms * factor)
  return long_ms, now + long_ms + 0.5
end

local function expiry_text(expiry)
  local ms = math.floor(expiry)
  return ms == expiry and whole(ms) or whole(ms) .. '.5'
end

-- The changes to the leases, found before the first write; and the shortest lease.
--
-- No worker is reaped because of an outage. If no worker watched for more than half of a worker's
-- lease, Redis or every worker was unavailable. That worker then gets a whole lease from now on. If
-- it had a long lease, it gets the longest one, because it may send no heartbeat sooner. It gets
-- this grace once: `graced` records the new expiry, and the worker's next heartbeat sets another.
-- Otherwise a worker that dies and starts again and again would extend the leases of the workers
-- before it.
--
-- When the clock is set back, leases also go back. Otherwise a dead worker would keep its tasks for
-- the length of that step. A usual lease that can be one from now on stays: a claim after that step
-- may have given it. `back` of the changes is for `moved_back`, which moves other times.
--
-- A queue without workers has nothing to watch, so `watched_at` keeps the value of the last worker.
local function mending_of(meta, workers, now, lease_ms, self)
  local seen = redis.call('HMGET', meta, 'watched_at', 'lease_min', 'back')
  local shortest = tonumber(seen[2] or lease_ms)
  local gap = now - tonumber(seen[1] or now)
  if gap >= 0 and gap <= shortest / 2 and not seen[3] then
    return nil, shortest
  end
  local mending, least = {}, math.huge
  if gap <= -BACK_MS then
    mending.back = { gap = gap }
  elseif seen[3] then
    mending.back = { bound = seen[3] }
  end
  local expiries = redis.call('ZRANGE', workers, 0, -1, 'WITHSCORES')
  if #expiries == 0 then
    return self ~= '' and mending.back and mending or nil, shortest
  end
  for i = 1, #expiries, 2 do
    local worker, score = expiries[i], expiries[i + 1]
    local info = redis.call('HMGET', key_of(meta, 'worker', worker), 'lease_ms', 'graced')
    local own_ms, graced = tonumber(info[1] or lease_ms), info[2] == score
    least = math.min(least, own_ms)
    local expiry, is_raised = tonumber(score), false
    local is_long = expiry % 1 ~= 0
    if gap < 0 and (is_long or expiry > now + own_ms) then
      expiry = expiry + gap
    elseif gap > own_ms / 2 and not graced and expiry < now + own_ms then
      expiry = is_long and now + own_ms * LONG_MAX + 0.5 or now + own_ms
      graced, is_raised = true, true
    end
    if expiry_text(expiry) ~= score and worker ~= self then
      mending[#mending + 1] = { worker = worker, expiry = expiry_text(expiry), graced = graced,
        is_raised = is_raised }
    end
  end
  return mending, least
end

local function mend_leases(meta, workers, mending)
  for _, change in ipairs(mending or {}) do
    redis.call('ZADD', workers, change.expiry, change.worker)
    if change.graced then
      redis.call('HSET', key_of(meta, 'worker', change.worker), 'graced', change.expiry)
    end
  end
end

-- Returns the ms until the earliest lease of another worker is over; -1 if there is no other.
local function next_expiry_in(workers, self, now)
  local first = redis.call('ZRANGE', workers, 0, 1, 'WITHSCORES')
  for i = 1, #first, 2 do
    if first[i] ~= self then
      return whole(math.max(0, math.ceil(tonumber(first[i + 1]) - now)))
    end
  end
  return '-1'
end
