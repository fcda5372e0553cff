-- dispenser_rebuild: makes the pool what a source lists, in pages, while the pool is in use
--
-- `begin` opens a rebuild, and ends one that is open. `page` adds items as `dispenser_add` does,
-- and notes that they are listed. `end` removes the items of the pool that were neither listed nor
-- added since the begin, a page at a time, and then closes the rebuild. Items with assignees stay
-- with them. What was finished since the begin is remembered for longer than a rebuild may take, so
-- a page that was read before does not bring it back.
--
-- KEYS   the naming block
-- ARGV   1 now override · 2 `begin`, `page` or `end` · 3 name of the rebuild · 4 name of a kept
--        answer, or '' · 5 digest of the request · of a page, for each item: the ms since when it
--        waits, '' if new · priority · item; of the end: the place after which it continues, '' at
--        first
-- REPLY  OK, of `begin` the name of the rebuild; of a page as of `dispenser_add`; of the end: how
--        many were removed, the place after which it continues or '' if the rebuild is closed
-- REFUSE NEWER with the required number; REUSED; STALE if another rebuild has begun, or this one
--        long ago

local dispenser, pool, holders, returned = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now, step, rebuild = now_ms(ARGV[1]), ARGV[2], ARGV[3]
local answer_name, digest, place = ARGV[4], ARGV[5], ARGV[6]
local BASE, EACH, PAGE = 5, 3, 500

-- Checks.
local head, settled = begin_request(dispenser, pool, answer_name, digest)
if settled then
  return settled
end
local stored = redis.call('HMGET', dispenser, 'rebuild', 'rebuilt')
local former = string.match(stored[1] or '', '^(%S+) ')
redis.call('ZCARD', pool)
redis.call('HLEN', holders)
redis.call('HLEN', returned)
if step == 'begin' then
  if former and former ~= rebuild then
    redis.call('HLEN', key_of(pool, 'seen', former))
  end
elseif step == 'end' and stored[2] == rebuild then
  return { 'OK', '0', '' }
elseif open_rebuild(dispenser, now) ~= rebuild then
  return { 'STALE' }
end
local add = step == 'page' and read_additions(dispenser, pool, holders, head, now, BASE, EACH)
local gone, next_place = { '' }, ''
if step == 'end' then
  gone, next_place = unlisted_items(pool, key_of(pool, 'seen', rebuild), place, PAGE)
end

-- Writes.
if step == 'begin' then
  redis.call('HSET', dispenser, 'rebuild', rebuild .. ' ' .. whole(now))
  if stored[2] == rebuild then
    redis.call('HDEL', dispenser, 'rebuilt')
  end
  if former and former ~= rebuild then
    redis.call('UNLINK', key_of(pool, 'seen', former))
  end
  return keep_answer(pool, answer_name, digest, { 'OK', rebuild })
elseif step == 'page' then
  write_additions(add)
  return keep_answer(pool, answer_name, digest,
    { 'OK', whole(add.added), whole(add.open), whole(add.assigned), whole(add.done) })
end
redis.call('ZREM', pool, unpack(gone))
redis.call('HDEL', returned, unpack(gone))
if next_place == '' then
  redis.call('UNLINK', key_of(pool, 'seen', rebuild))
  redis.call('HSET', dispenser, 'rebuilt', rebuild)
  redis.call('HDEL', dispenser, 'rebuild')
end
return keep_answer(pool, answer_name, digest, { 'OK', whole(#gone - 1), next_place })
