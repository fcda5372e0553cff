-- dispenser_add: adds items to the pool of a dispenser
--
-- An item that is known keeps its place: in the pool, with its assignee, or among the finished
-- ones, so a repeat adds nothing. An item in the pool only moves forward, if its new rank is before
-- the old one. While a rebuild is open, the items count as listed by it.
--
-- KEYS   the naming block
-- ARGV   1 now override · 2 name of a kept answer, or '' · 3 digest of the request · then for each
--        item: the ms since when it waits, '' if new · priority · item
-- REPLY  OK, how many were added, how many were in the pool, with assignees, and finished before
-- REFUSE NEWER with the required number, REUSED

local dispenser, pool, holders = KEYS[1], KEYS[2], KEYS[3]
local now, answer_name, digest = now_ms(ARGV[1]), ARGV[2], ARGV[3]
local BASE, EACH = 3, 3

-- Checks.
local head, settled = begin_request(dispenser, pool, answer_name, digest)
if settled then
  return settled
end
local add = read_additions(dispenser, pool, holders, head, now, BASE, EACH)

-- Writes.
write_additions(add)
return keep_answer(pool, answer_name, digest,
  { 'OK', whole(add.added), whole(add.open), whole(add.assigned), whole(add.done) })
