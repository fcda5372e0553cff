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
-- REPLY  OK, the ms until the assignee is over; the items that it holds in their order, as runs of
--        items of which `holders` says the same: how many, what it says, the items
-- REFUSE NEWER with the required number, REUSED

local KEYS, ARGV, call = KEYS, ARGV, redis.call
local dispenser, pool, holders, assignees = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local bucket, deadlines, returned = KEYS[5], KEYS[6], KEYS[7]
local now, assignee, limit_text = now_ms(ARGV[1]), ARGV[2], ARGV[3]
local hold_text, hold_ms, hold_max_ms = ARGV[4], ARGV[4] + 0, ARGV[5] + 0
local answer_name, digest, limit = ARGV[6], ARGV[7], limit_text + 0
local keys = { pool = pool, holders = holders, assignees = assignees, deadlines = deadlines,
  returned = returned }

-- Checks.
local head, settled = begin_request(dispenser, pool, answer_name, digest)
if settled then
  return settled
end
local back = lost_items(keys, now, assignee)
late_times(back, head, now, hold_ms, hold_max_ms)
local items, texts, held = held_items(back, bucket, assignee, now)
for i = #items, limit + 1, -1 do
  add_back(back, items[i], call('ZSCORE', bucket, items[i]), assignee)
  items[i] = nil
end
read_returns(back, now, hold_ms)
local has_notes = call('HLEN', returned) > 0
-- The usual call moves the first items of the pool to an empty bucket, and reads no rank.
local first = limit > 0 and not (items[1] or back.items[1])
  and first_items(back, assignee, now, limit_text, has_notes)
local moved = first and #first or 0
local taken, last_rank = {}, nil
if not first and #items < limit then
  taken, last_rank = pick_items(back, assignee, now, limit - #items, has_notes)
end
local deadline = whole(now + hold_max_ms)
local holder = deadline .. ':' .. assignee
local from_pool, kept, ranks, marks, ends = { '' }, {}, {}, {}, {}
for i = 1, moved do
  local item = first[i]
  marks[2 * i - 1], marks[2 * i] = item, holder
  ends[2 * i - 1], ends[2 * i] = deadline, item
end
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
end
local reply
if moved > 0 then
  reply = { 'OK', hold_text, whole(moved), holder, unpack(first) }
else
  reply = { 'OK', hold_text }
  add_held(reply, with_taken(bucket, items, texts, taken, holder))
end

-- Writes.
call('ZREM', assignees, '')
write_moved(back, dispenser)
if moved > 0 then
  -- The first items in reverse: each goes before the others, so Redis compares few of them.
  call('ZRANGESTORE', bucket, pool, whole(-moved), '-1', 'REV')
  call('ZREMRANGEBYRANK', pool, '0', whole(moved - 1))
  hset_as_table(holders, held, marks)
  zadd_as_table(deadlines, held, ends)
elseif taken[1] then
  call('ZADD', bucket, unpack(ranks))
  call('HSET', holders, unpack(marks))
  call('ZADD', deadlines, unpack(ends))
end
if limit > 0 then
  call('ZADD', assignees, whole(now + hold_ms), assignee)
end
write_back(back, kept, assignee)
if last_rank then
  call('ZREMRANGEBYSCORE', pool, '-inf', last_rank)
elseif from_pool[2] then
  call('ZREM', pool, unpack(from_pool))
end
if limit == 0 then
  call('ZREM', assignees, assignee)
end
return keep_answer(pool, answer_name, digest, reply)
