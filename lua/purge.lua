-- purge: Dead | Cancelled → ∅, past their age or above the cap, up to 128; idle ledgers, too
--
-- Keeps the latest birth of what it removes: a later task without a record has succeeded, as far as
-- `await` knows. So nothing but this may remove `meta` while there is a ledger.
--
-- KEYS   the naming block
-- ARGV   1 now override · 2 how many to keep · 3 age ms · 4 ledger idle ms
-- REPLY  OK, how many tasks were purged, '1' if more is due, how many workers the queue has
-- REFUSE NEWER with what is needed

local meta, tasks, dead, cancelled, tries = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local errors, blobs, priorities = KEYS[6], KEYS[7], KEYS[8]
local ledgers, workers = KEYS[9], KEYS[10]
local now, keep, age_ms, idle_ms = now_ms(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]),
  tonumber(ARGV[4])
local PURGE_MAX = 64

-- Checks.
local needs = redis.call('HGET', meta, 'needs')
if needs and tonumber(needs) > NEEDS_KNOWN then
  return { 'NEWER', needs }
end
local function victims_of(zset)
  local excess = redis.call('ZCARD', zset) - keep
  if excess > 0 then
    return redis.call('ZRANGE', zset, 0, math.min(excess, PURGE_MAX) - 1)
  end
  return redis.call('ZRANGEBYSCORE', zset, '-inf', whole(now - age_ms), 'LIMIT', 0, PURGE_MAX)
end
local ids, from_dead, from_cancelled = {}, victims_of(dead), victims_of(cancelled)
for _, id in ipairs(from_dead) do
  ids[#ids + 1] = id
end
for _, id in ipairs(from_cancelled) do
  ids[#ids + 1] = id
end
local marks, born = {}, 0
local records = #ids > 0 and redis.call('HMGET', tasks, unpack(ids)) or {}
for i = 1, #ids do
  local biz = biz_key(meta, header_of(records[i]))
  marks[i] = biz and { biz, redis.call('GET', biz) }
  born = math.max(born, born_ms(ids[i]))
end
local sides = { tries, errors, blobs, priorities }
for _, side in ipairs(sides) do
  redis.call('HLEN', side)
end
local idle = redis.call('ZRANGEBYSCORE', ledgers, '-inf', whole(now - idle_ms), 'LIMIT', 0,
  PURGE_MAX)
for _, client in ipairs(idle) do
  redis.call('EXISTS', derive(meta, 'ledger', client))
end
born = math.max(born, tonumber(redis.call('HGET', meta, 'purged_born') or 0))
local live = redis.call('ZCARD', workers)

-- Writes.
redis.call('ZREM', dead, '', unpack(from_dead))
redis.call('ZREM', cancelled, '', unpack(from_cancelled))
if #ids > 0 then
  redis.call('HDEL', tasks, unpack(ids))
  for _, side in ipairs(sides) do
    redis.call('HDEL', side, unpack(ids))
  end
end
for i, id in ipairs(ids) do
  if marks[i] and owns_mark(marks[i][2], id) then
    redis.call('UNLINK', marks[i][1])
  end
end
for _, client in ipairs(idle) do
  redis.call('UNLINK', derive(meta, 'ledger', client))
  redis.call('ZREM', ledgers, client)
end
if #ids > 0 then
  redis.call('HINCRBY', meta, 'purged', #ids)
  redis.call('HSET', meta, 'purged_born', whole(born))
end
local more = #from_dead == PURGE_MAX or #from_cancelled == PURGE_MAX or #idle == PURGE_MAX
return { 'OK', whole(#ids), more and '1' or '0', whole(live) }
