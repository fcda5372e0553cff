-- dispenser_done: ends items that an assignee holds
--
-- A finished item is remembered for one to two hours. So a repeat gets the same answer, and a
-- rebuild or an addition that was read before does not bring the item back. The call renews the
-- assignee.
--
-- KEYS   the naming block; the bucket has the name of the assignee
-- ARGV   1 now override · 2 assignee · 3 ms until the assignee is over without a call · 4 name of a
--        kept answer, or '' · 5 digest of the request · items
-- REPLY  OK, a letter for each item: `d` the assignee finished it, now or before; `a` another holds
--        it; `o` it is in the pool; `f` another finished it; `u` it is not known
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
local done = done_keys(pool, now, head)
local mine, letters = named_items(back, items, done, assignee, now)
read_returns(back, now, hold_ms)
local has_notes = redis.call('HLEN', returned) > 0
redis.call('ZCARD', bucket)
local remembered = redis.call('HLEN', done[1])
local span, expiring = next_span(head, done, now)
local marks = {}
for i = 1, #mine do
  marks[2 * i - 1], marks[2 * i] = mine[i], assignee
end
for i = 1, #letters do
  local letter = letters[i]
  letters[i] = (letter == 'm' or letter == 'f') and 'd' or letter == 'F' and 'f' or letter
end

-- Writes.
redis.call('ZREM', assignees, '')
write_moved(back, dispenser)
if mine[1] then
  redis.call('ZREM', bucket, unpack(mine))
  hset_as_table(done[1], remembered, marks)
  for i = 1, expiring do
    redis.call('PEXPIRE', done[i], whole(3 * DONE_SPAN_MS))
  end
  if span then
    redis.call('HSET', dispenser, 'span', span)
  end
  redis.call('HDEL', holders, unpack(mine))
  redis.call('ZREM', deadlines, unpack(mine))
  if has_notes then
    redis.call('HDEL', returned, unpack(mine))
  end
end
redis.call('ZADD', assignees, whole(now + hold_ms), assignee)
write_back(back, {}, assignee)
return keep_answer(pool, answer_name, digest, { 'OK', table.concat(letters) })
