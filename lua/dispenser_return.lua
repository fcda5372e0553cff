-- dispenser_return: gives items back to the pool, at their places
--
-- The assignee does not get such an item again within its hold time, so others can take it. The
-- call renews the assignee.
--
-- KEYS   the naming block; the bucket has the name of the assignee
-- ARGV   1 now override · 2 assignee · 3 ms until the assignee is over without a call · 4 name of a
--        kept answer, or '' · 5 digest of the request · items
-- REPLY  OK, a letter for each item: `o` it is in the pool, now or before; `a` another holds it;
--        `d` the assignee finished it; `f` another finished it; `u` it is not known
-- REFUSE NEWER with the required number, REUSED

local dispenser, pool, holders, assignees = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local bucket, deadlines, returned = KEYS[5], KEYS[6], KEYS[7]
local now, assignee, hold_ms = now_ms(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local answer_name, digest, items = ARGV[4], ARGV[5], { unpack(ARGV, 6) }
local keys = { pool = pool, holders = holders, assignees = assignees, deadlines = deadlines,
  returned = returned }

-- Checks.
local head, settled = begin_request(dispenser, pool, answer_name, digest)
if settled then
  return settled
end
local back = lost_items(keys, now, assignee)
late_times(back, head, now, hold_ms)
local mine, letters = named_items(back, items, done_keys(pool, now, head), assignee, now)
local ranks = mine[1] and redis.call('ZMSCORE', bucket, unpack(mine))
for i = 1, #mine do
  add_back(back, mine[i], ranks[i], assignee)
  back.noted[mine[i]], back.barred[mine[i]] = assignee, true
end
read_returns(back, now, hold_ms)
redis.call('ZCARD', bucket)
for i = 1, #letters do
  local letter = letters[i]
  letters[i] = letter == 'm' and 'o' or letter == 'f' and 'd' or letter == 'F' and 'f' or letter
end

-- Writes.
redis.call('ZREM', assignees, '')
write_moved(back, dispenser)
redis.call('ZADD', assignees, whole(now + hold_ms), assignee)
write_back(back, {}, assignee)
return keep_answer(pool, answer_name, digest, { 'OK', table.concat(letters) })
