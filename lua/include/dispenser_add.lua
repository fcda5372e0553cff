-- dispenser_add: items that come into the pool, from `dispenser_add` and `dispenser_rebuild`.

-- A place is a 1,024th of a ms, so that items of one call and of one ms stay in their order. Redis
-- reads and prints whole numbers faster than others.
local PLACES_A_MS, PLACES_A_STEP = 1024, 60000 * 1024

-- Returns the open rebuild as its id, or nil if there is none or it began too long ago.
local function open_rebuild(dispenser, now)
  local id, begun = string.match(redis.call('HGET', dispenser, 'rebuild') or '', '^(%S+) (%d+)$')
  -- The clock may have been set back since.
  if id and math.abs(now - begun) < REBUILD_MAX_MS then
    return id
  end
  return nil
end

-- Returns which of the items are finished.
local function finished_items(done, items)
  local is_done = {}
  for i = 1, #done do
    local by = redis.call('HMGET', done[i], unpack(items))
    for at = 1, #items do
      is_done[items[at]] = is_done[items[at]] or by[at]
    end
  end
  return is_done
end

-- Reads which of the items in ARGV are new; counts the others by where they are.
local function read_additions(dispenser, pool, holders, head, now, base, each)
  local add = { dispenser = dispenser, pool = pool, ranked = {}, seen = {} }
  add.added, add.open, add.assigned, add.done = 0, 0, 0, 0
  local items = {}
  for at = base + each, #ARGV, each do
    items[#items + 1] = ARGV[at]
  end
  local rebuild = open_rebuild(dispenser, now)
  add.seen_key = rebuild and key_of(pool, 'seen', rebuild)
  if add.seen_key then
    redis.call('HLEN', add.seen_key)
  end
  redis.call('HLEN', holders)
  add.size = redis.call('ZCARD', pool)
  if not items[1] then
    return add
  end
  local held = redis.call('HMGET', holders, unpack(items))
  local is_done = finished_items(done_keys(pool, now, head), items)
  local ranks = add.size > 0 and redis.call('ZMSCORE', pool, unpack(items)) or {}
  local place = math.max(now * PLACES_A_MS,
    (tonumber(redis.call('HGET', dispenser, 'place')) or 0) + 1)
  local is_named = {}
  for i = 1, #items do
    local item, at = items[i], base + (i - 1) * each
    local since = tonumber(ARGV[at + 1])
    local from = since and since * PLACES_A_MS + place % PLACES_A_MS or place
    local rank = whole(from - tonumber(ARGV[at + 2]) * PLACES_A_STEP)
    local known_rank = not held[i] and not is_named[item] and ranks[i]
    place = place + 1
    add.seen[#add.seen + 1] = item
    add.seen[#add.seen + 1] = ''
    if held[i] then
      add.assigned = add.assigned + 1
    elseif is_done[item] then
      add.done = add.done + 1
    elseif known_rank or is_named[item] then
      add.open = add.open + 1
    else
      add.added = add.added + 1
    end
    if not held[i] and not is_done[item] and not is_named[item]
      and (not known_rank or tonumber(rank) < tonumber(known_rank)) then
      add.ranked[#add.ranked + 1] = rank
      add.ranked[#add.ranked + 1] = item
    end
    is_named[item] = true
  end
  add.place = place - 1
  return add
end

-- The first command grows, so that a full Redis refuses the whole call.
local function write_additions(add)
  if add.place then
    redis.call('HSET', add.dispenser, 'place', whole(add.place))
  end
  if add.ranked[1] then
    zadd_as_table(add.pool, add.size, add.ranked)
  end
  if add.seen_key and add.seen[1] then
    redis.call('HSET', add.seen_key, unpack(add.seen))
    redis.call('PEXPIRE', add.seen_key, whole(2 * REBUILD_MAX_MS))
  end
end
