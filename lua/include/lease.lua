-- lease: who is alive. `workers` holds each worker's lease expiry; a heartbeat is one write to it.

-- Nobody has watched for more than half a lease: Redis was away, or every worker was. Either way no
-- expiry can be trusted.
local function unwatched(meta, now, lease_ms)
  local watched_at = tonumber(redis.call('HGET', meta, 'watched_at') or now)
  return now - watched_at > lease_ms / 2
end

-- Gives every worker a whole lease from now on. Nobody is reaped for an outage.
local function grant_grace(workers, now, lease_ms)
  local expiries = redis.call('ZRANGE', workers, 0, -1, 'WITHSCORES')
  for i = 1, #expiries, 2 do
    if tonumber(expiries[i + 1]) < now + lease_ms then
      redis.call('ZADD', workers, whole(now + lease_ms), expiries[i])
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
