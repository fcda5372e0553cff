-- dispenser_back: items that go back to the pool, most of them because their time is over.

-- One call looks at most at so many buckets and items of others.
local BUCKETS_MAX, ITEMS_MAX, OVERDUE_MAX = 16, 512, 512
-- One more shows whether there are more. As an argument of Redis, a text costs less than a number.
local BUCKETS_AND_ONE, OVERDUE_AND_ONE = '17', '513'

-- Adds one item with its rank, which keeps its place in the pool.
local function add_back(back, item, rank, assignee)
  local from = back.from[assignee]
  if not from then
    from = {}
    back.from[assignee] = from
  end
  from[#from + 1] = item
  back.items[#back.items + 1] = item
  back.rank[item] = rank
end

-- Adds up to `most` items of a bucket. Returns how many, and whether there are more.
local function add_bucket(back, assignee, most)
  local found = redis.call('ZRANGE', key_of(back.keys.pool, 'bucket', assignee), 0, most,
    'WITHSCORES')
  local count = math.min(#found / 2, most)
  for i = 1, count do
    add_back(back, found[2 * i - 1], found[2 * i], assignee)
    back.noted[found[2 * i - 1]] = assignee
  end
  return count, #found / 2 > most
end

-- Reads what goes back because its time is over: the bucket of the caller, then a bounded number of
-- other buckets and of items. `back.more` says that a repeat finds more. The caller stays among the
-- assignees, because its call shows that it is there.
local function lost_items(keys, now, assignee)
  local back = { keys = keys, items = {}, rank = {}, from = {}, noted = {}, barred = {},
    ended = {} }
  local now_text = whole(now)
  local over = redis.call('ZRANGEBYSCORE', keys.assignees, '-inf', now_text, 'LIMIT', '0',
    BUCKETS_AND_ONE)
  if over[1] then
    local until_ms = redis.call('ZSCORE', keys.assignees, assignee)
    if until_ms and tonumber(until_ms) <= now then
      add_bucket(back, assignee, ITEMS_MAX)
    end
  end
  local left = ITEMS_MAX
  for i = 1, #over do
    if over[i] ~= assignee then
      if i > BUCKETS_MAX or left == 0 then
        back.more = true
        break
      end
      local count, is_part = add_bucket(back, over[i], left)
      left = left - count
      if not is_part then
        back.ended[#back.ended + 1] = over[i]
      end
      back.more = back.more or is_part
    end
  end
  local overdue = redis.call('ZRANGEBYSCORE', keys.deadlines, '-inf', now_text, 'LIMIT', '0',
    OVERDUE_AND_ONE)
  if #overdue > OVERDUE_MAX then
    overdue[#overdue] = nil
    back.more = true
  end
  if overdue[1] then
    local holders = redis.call('HMGET', keys.holders, unpack(overdue))
    for i = 1, #overdue do
      local item = overdue[i]
      if not back.rank[item] then
        local _, holder = holder_of(holders[i] or '0:')
        local rank = redis.call('ZSCORE', key_of(keys.pool, 'bucket', holder), item)
        if rank then
          add_back(back, item, rank, holder)
          back.noted[item], back.barred[item] = holder, true
        end
      end
    end
  end
  return back
end

-- Reads how often the noted items came back, and adds one. The holder of a barred item does not get
-- it again within `hold_ms`.
local function read_returns(back, now, hold_ms)
  if not back.items[1] then
    return
  end
  redis.call('ZCARD', back.keys.pool)
  local items, notes = {}, {}
  for item in pairs(back.noted) do
    items[#items + 1] = item
  end
  back.noted_before = redis.call('HLEN', back.keys.returned)
  if items[1] then
    local before = redis.call('HMGET', back.keys.returned, unpack(items))
    for i = 1, #items do
      local item = items[i]
      local times = tonumber(string.match(before[i] or '0', '^%d+')) + 1
      notes[2 * i - 1] = item
      notes[2 * i] = whole(times) .. ' ' .. (back.barred[item] and whole(now + hold_ms) or '0')
        .. ' ' .. back.noted[item]
    end
  end
  back.notes = notes
end

-- Writes all of it, after `read_returns`. An item of `kept` goes to the caller instead of the pool.
local function write_back(back, kept, caller)
  local keys = back.keys
  if not back.items[1] then
    if back.ended[1] then
      redis.call('ZREM', keys.assignees, unpack(back.ended))
    end
    return
  end
  local ranked, freed = {}, {}
  for i = 1, #back.items do
    local item = back.items[i]
    if not kept[item] then
      ranked[#ranked + 1] = back.rank[item]
      ranked[#ranked + 1] = item
      freed[#freed + 1] = item
    end
  end
  if freed[1] then
    redis.call('ZADD', keys.pool, unpack(ranked))
    redis.call('ZREM', keys.deadlines, unpack(freed))
    redis.call('HDEL', keys.holders, unpack(freed))
  end
  for assignee, items in pairs(back.from) do
    local gone = items
    if assignee == caller then
      gone = {}
      for i = 1, #items do
        if not kept[items[i]] then
          gone[#gone + 1] = items[i]
        end
      end
    end
    if gone[1] then
      redis.call('ZREM', key_of(keys.pool, 'bucket', assignee), unpack(gone))
    end
  end
  if back.notes[1] then
    hset_as_table(keys.returned, back.noted_before, back.notes)
  end
  if back.ended[1] then
    redis.call('ZREM', keys.assignees, unpack(back.ended))
  end
end
