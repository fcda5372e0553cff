-- register: ∅ → a worker of this queue, under a lease
--
-- A worker registers before its first claim. The call is safe to repeat: a repetition renews the
-- lease.
--
-- KEYS   the naming block
-- ARGV   1 now override · 2 worker · 3 lease ms · 4 description as JSON
-- REPLY  OK, now ms, ms until the earliest lease of another worker is over (-1: no other)

local meta, workers, worker_info = KEYS[1], KEYS[2], KEYS[3]
local now, worker, lease_ms, description = now_ms(ARGV[1]), ARGV[2], tonumber(ARGV[3]), ARGV[4]

-- Checks.
local mending, lease_min = mending_of(meta, workers, now, lease_ms, worker)
local write_back = mending and mending.back and setting_back()(meta, now, mending.back)
redis.call('ZCARD', workers)
redis.call('HLEN', worker_info)

-- Writes.
redis.call('ZREM', workers, '')
mend_leases(meta, workers, mending)
if write_back then
  write_back()
end
redis.call('ZADD', workers, whole(now + lease_ms), worker)
redis.call('HSET', worker_info, 'description', description, 'lease_ms', whole(lease_ms))
redis.call('HSET', meta, 'watched_at', whole(now), 'lease_min',
  whole(math.min(lease_min, lease_ms)))
return { 'OK', whole(now), next_expiry_in(workers, worker, now) }
