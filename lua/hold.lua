-- hold: free → held, held → held: what one member holds of the posts of a roster
--
-- A roster has a number of posts. Each post has at most one live holder, and the members hold about
-- the same number of them. A member calls this once a heartbeat and says what it holds: the call
-- renews its lease, frees the posts of the dead, grants free posts, and names those to give back.
-- A post that the caller does not name under its fence counts as free. A post that Redis does not
-- know, or knows under an earlier fence, stays with the caller if Redis has not noted that grant or
-- a later one of the post: then it has lost writes. In a roster that Redis does not know, nothing
-- is granted for one lease, because others may hold posts. It has no generation until a member
-- comes that knows it, or until that time is over.
-- A member takes free posts up to its share, and one more only if no other lacks it. It gives back
-- only what members lack that have been here for a while, so members that come and go move nothing.
-- The posts of a new generation are granted once no live member holds one of an earlier generation.
-- A heartbeat that arrives after a later one of the same member, or a second time, is refused: it
-- does not name what the member was granted since, so it would free posts that the member works on.
--
-- KEYS   the naming block
-- ARGV   1 now override · 2 worker · 3 lease ms · 4 how many posts its code asks for ·
--        5 generation, 6 count and 7 longest lease ms that it heard last, 0 if none · 8 for how
--        many ms nothing is granted if Redis does not know the roster · 9 ms after which a member
--        counts for others · 10 '1' if it leaves, so that it takes nothing and gives back all,
--        else '0' · 11 description as JSON · 12 number of the call, above that of the member's last
--        one · then what it holds: post and fence each
-- REPLY  OK, now ms, ms until the earliest lease of another member is over (-1: no other), ms after
--        which to call again before the next heartbeat (-1: not before), generation (0: none yet),
--        count, longest lease ms; then '<post> <fence> <keep or drop>' of each post that it holds
-- REFUSE STALE

local meta, workers, joined, posts = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local suspended, generations, fences, worker_info = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local now, worker, lease_ms = now_ms(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local asked, heard, heard_count = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local longest_ms, quiet_ms, settle_ms = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local is_leaving, description, number, shown = ARGV[10] == '1', ARGV[11], tonumber(ARGV[12]), 12
-- At most this many dead members are removed by one call. The others do not count either.
local DEAD_MAX = 500
-- A member that lacks posts asks again after this part of its lease.
local SOON_PARTS = 15
-- The words of a reply before the posts.
local HEAD = 7

-- Checks.
if tonumber(redis.call('HGET', worker_info, 'beat') or 0) >= number then
  return { 'STALE' }
end
local mending, lease_min = mending_of(meta, workers, now, lease_ms, worker)
local known = roster_of(meta, now, heard)
local generation, count, fresh = known.generation, known.count, known.fresh
longest_ms = math.max(longest_ms, known.longest_ms, lease_ms)
local quiet_until = known.quiet_until
if generation == 0 and quiet_until == 0 and quiet_ms > 0 then
  quiet_until = now + math.max(quiet_ms, longest_ms)
elseif quiet_until > now then
  -- Others may have longer leases than the member with which it began.
  quiet_until = math.min(quiet_until + longest_ms - known.longest_ms, now + longest_ms)
end
if quiet_until <= now then
  quiet_until = 0
end
if heard > generation then
  generation, count = heard, heard_count
elseif generation == 0 then
  generation = quiet_until == 0 and fresh or 0
  count = count > 0 and count or asked
end
local members = members_of(workers, joined, mending, worker, now, settle_ms, DEAD_MAX)
local claims = {}
for i = shown + 1, #ARGV, 2 do
  claims[ARGV[i]] = ARGV[i + 1]
end
local list = list_posts(posts, fences, members.live, worker, claims, generation)
fresh = math.max(fresh, list.fence + 1)
local stopped, active = stopped_of(suspended, count)
redis.call('HLEN', generations)
for _, name in ipairs(members.dead) do
  redis.call('HLEN', key_of(meta, 'worker', name))
end
local share = share_of(list, members, active, is_leaving)
local given = given_to(list, share, {
  now = now, generation = generation, count = count, fresh = fresh, stopped = stopped,
  is_leaving = is_leaving, may_grant = now >= quiet_until, worker = worker,
})
if #given.granted > 0 then
  redis.call('HLEN', fences)
end
local soon = -1
if now < quiet_until then
  soon = quiet_until - now
elseif not is_leaving and (given.mine < share.floor or given.waits) then
  soon = math.max(math.floor(lease_ms / SOON_PARTS), 1)
end

-- Writes.
redis.call('ZREM', workers, '')
mend_leases(meta, workers, mending)
redis.call('ZADD', workers, whole(now + lease_ms), worker)
redis.call('HSET', worker_info, 'description', description, 'lease_ms', whole(lease_ms),
  'beat', whole(number))
local own_since = members.since[worker] or now
members.changed[#members.changed + 1] = worker
members.changed[#members.changed + 1] = is_leaving and '-' or whole(own_since)
redis.call('HSET', joined, unpack(members.changed))
redis.call('HSET', meta, 'watched_at', whole(now),
  'lease_min', whole(math.min(lease_min, lease_ms)), 'lease_max', whole(longest_ms),
  'generation', whole(generation), 'count', whole(count), 'quiet_until', whole(quiet_until),
  'fence', whole(math.max(given.fence, generation)))
if generation ~= known.generation then
  redis.call('HSET', generations, whole(generation), whole(count))
end
if #given.changed > 0 then
  redis.call('HSET', posts, unpack(given.changed))
end
if #given.granted > 0 then
  redis.call('HSET', fences, unpack(given.granted))
end
if #given.gone > 0 then
  redis.call('HDEL', posts, unpack(given.gone))
end
if #members.dead > 0 then
  redis.call('ZREM', workers, unpack(members.dead))
  redis.call('HDEL', joined, unpack(members.dead))
  for _, name in ipairs(members.dead) do
    redis.call('UNLINK', key_of(meta, 'worker', name))
  end
end
local reply = { 'OK', whole(now), next_expiry_in(workers, worker, now), whole(soon),
  whole(generation), whole(count), whole(longest_ms) }
for i, word in ipairs(given.reply) do
  reply[HEAD + i] = word
end
return reply
