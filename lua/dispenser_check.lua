-- dispenser_check: renews an assignee, and answers what it holds
--
-- The call does not renew the time of an item, so nobody keeps an item by asking for it.
--
-- KEYS   the naming block; the bucket has the name of the assignee
-- ARGV   1 now override · 2 assignee · 3 ms until the assignee is over without a call
-- REPLY  OK, the ms until the assignee is over; the items that it holds, as of `dispenser_assign`
-- REFUSE NEWER with the required number

local dispenser, pool, holders, assignees = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local bucket, deadlines, returned = KEYS[5], KEYS[6], KEYS[7]
local now, assignee = now_ms(ARGV[1]), ARGV[2]
local hold_text, hold_ms = ARGV[3], tonumber(ARGV[3])
local keys = { pool = pool, holders = holders, assignees = assignees, deadlines = deadlines,
  returned = returned }

-- Checks.
local head = read_head(dispenser)
if head.newer then
  return { 'NEWER', head.newer }
end
local back = lost_items(keys, now, assignee)
late_times(back, head, now, hold_ms)
local items, texts = held_items(back, bucket, assignee, now)
read_returns(back, now, hold_ms)
local reply = { 'OK', hold_text }
add_held(reply, items, texts)

-- Writes.
redis.call('ZREM', assignees, '')
write_moved(back, dispenser)
redis.call('ZADD', assignees, whole(now + hold_ms), assignee)
write_back(back, {}, assignee)
return reply
