-- lease: who is alive. `workers` holds each worker's lease expiry; a heartbeat is one write to it.

-- Whether nobody has watched for more than half a lease: Redis was away, or every worker was, and
-- no expiry can be trusted. And by how many ms Redis' clock was set back since somebody did.
local function unwatched(meta, now, lease_ms)
  local watched_at = tonumber(redis.call('HGET', meta, 'watched_at') or now)
  return now - watched_at > lease_ms / 2, math.max(0, watched_at - now)
end

-- Nobody is reaped for an outage: where nobody watched, every worker has a whole lease from now on.
-- And leases go back with the clock, or who is dead would keep its tasks for as long as that step.
local function mend_leases(workers, now, lease_ms, away, set_back)
  if not away and set_back == 0 then
    return
  end
  local expiries = redis.call('ZRANGE', workers, 0, -1, 'WITHSCORES')
  for i = 1, #expiries, 2 do
    local expiry = tonumber(expiries[i + 1])
    local mended = math.max(expiry - set_back, away and now + lease_ms or 0)
    if mended ~= expiry then
      redis.call('ZADD', workers, whole(mended), expiries[i])
    end
  end
end

-- The ms until the earliest lease of another worker is over; -1 if there is no other.
local function next_expiry_in(workers, self, now)
  local first = redis.call('ZRANGE', workers, 0, 1, 'WITHSCORES')
  for i = 1, #first, 2 do
    if first[i] ~= self then
      return whole(math.max(0, tonumber(first[i + 1]) - now))
    end
  end
  return '-1'
end
