-- dispenser_peek: counts of a dispenser, or a page of its items or assignees
--
-- Items whose time is over go back to the pool first. A call that finds any answers nothing else,
-- and the caller repeats it, as after a clock that was set back. So the counts are right.
--
-- KEYS   the naming block
-- ARGV   1 now override · 2 ms for which the holder of an overdue item does not get it again, if no
--        assignee has said that · 3 `counts`, `open`, `assigned` or `assignees` · 4 how many rows a
--        page skips · 5 how many it has
-- REPLY  OK, `1` alone if the caller must repeat the call; else `0` and the counts: items in the
--        pool, with assignees, assignees, the rank in ms of the first item of the pool or '', the
--        time in ms, `1` if a rebuild is open; or for each open item: item, its rank, '' or how
--        often it came back, a space, the ms until which its last holder does not get it, a space,
--        that holder; for each assigned item: item, its holder, the ms at which its time is over;
--        for each assignee: name, the ms at which it is over, how many items it holds
-- REFUSE NEWER with the required number

local dispenser, pool, holders, assignees = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local deadlines, returned = KEYS[5], KEYS[6]
local now, hold_ms, what = now_ms(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local first, count = tonumber(ARGV[4]), tonumber(ARGV[5])
local keys = { pool = pool, holders = holders, assignees = assignees, deadlines = deadlines,
  returned = returned }

-- Checks.
local head = read_head(dispenser)
if head.newer then
  return { 'NEWER', head.newer }
end
local back = lost_items(keys, now, '')
late_times(back, head, now)
redis.call('ZCARD', pool)
redis.call('HLEN', holders)
-- What the caller says may not be what the assignees said.
read_returns(back, now, head.hold_ms > 0 and head.hold_ms or hold_ms)

local is_over = back.items[1] or back.ended[1] or back.moved
local reply = { 'OK', '0' }
if not is_over and what == 'counts' then
  return add_counts(keys, dispenser, now, reply)
elseif not is_over then
  return add_rows(keys, what, first, count, reply)
end

-- Writes.
redis.call('ZREM', assignees, '')
write_moved(back, dispenser)
write_back(back, {}, '')
return { 'OK', '1' }
