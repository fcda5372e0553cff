-- dispenser_assign: lets an assignee hold up to a number of items
--
-- The items that it holds already come first, so a repeat assigns nothing more. What is above the
-- number goes back to the pool, the last ones first. The call renews the assignee, and not the time
-- of an item. 0 gives all back, and the assignee leaves.
--
-- KEYS   the naming block; the bucket has the name of the assignee
-- ARGV   1 now override · 2 assignee · 3 how many · 4 ms until the assignee is over without a call
--        · 5 ms until the time of an item is over · 6 name of a kept answer, or '' · 7 digest of
--        the request
-- REPLY  OK, the ms until the assignee is over; for each item that it holds: item, what `holders`
--        says of it
-- REFUSE NEWER with the required number, REUSED

local dispenser, pool, holders, assignees = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local bucket, deadlines, returned = KEYS[5], KEYS[6], KEYS[7]
local now, assignee, limit = now_ms(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local hold_text, hold_ms, hold_max_ms = ARGV[4], tonumber(ARGV[4]), tonumber(ARGV[5])
local answer_name, digest = ARGV[6], ARGV[7]
local keys = { pool = pool, holders = holders, assignees = assignees, deadlines = deadlines,
  returned = returned }

-- Checks.
local head, settled = begin_request(dispenser, pool, answer_name, digest)
if settled then
  return settled
end
local back = lost_items(keys, now, assignee)
late_times(back, head, now, hold_ms, hold_max_ms)
local items, texts = held_items(back, bucket, assignee, now)
for i = #items, limit + 1, -1 do
  add_back(back, items[i], redis.call('ZSCORE', bucket, items[i]), assignee)
  items[i] = nil
end
read_returns(back, now, hold_ms)
local taken, last_rank = {}, nil
if #items < limit then
  taken, last_rank = pick_items(back, assignee, now, limit - #items)
end
local deadline = whole(now + hold_max_ms)
local holder = deadline .. ':' .. assignee
local reply, rest = { 'OK', hold_text }, taken
if items[1] and taken[1] then
  items, texts, rest = in_order(bucket, items, texts, taken, holder)
end
add_held(reply, items, texts)
local from_pool, kept, ranks, marks, ends, at = { '' }, {}, {}, {}, {}, #reply
for i = 1, #taken, 2 do
  local item = taken[i]
  ranks[i], ranks[i + 1] = taken[i + 1], item
  marks[i], marks[i + 1] = item, holder
  ends[i], ends[i + 1] = deadline, item
  if back.rank[item] then
    kept[item] = true
  elseif not last_rank then
    from_pool[#from_pool + 1] = item
  end
  if rest[1] then
    reply[at + i], reply[at + i + 1] = item, holder
  end
end

-- Writes.
redis.call('ZREM', assignees, '')
write_moved(back, dispenser)
if taken[1] then
  redis.call('ZADD', bucket, unpack(ranks))
  redis.call('HSET', holders, unpack(marks))
  redis.call('ZADD', deadlines, unpack(ends))
end
if limit > 0 then
  redis.call('ZADD', assignees, whole(now + hold_ms), assignee)
end
write_back(back, kept, assignee)
if last_rank then
  redis.call('ZREMRANGEBYSCORE', pool, '-inf', last_rank)
elseif from_pool[2] then
  redis.call('ZREM', pool, unpack(from_pool))
end
if limit == 0 then
  redis.call('ZREM', assignees, assignee)
end
return keep_answer(pool, answer_name, digest, reply)
