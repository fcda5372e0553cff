-- limit: sets the limit of a gate at run time, or removes what was set
--
-- What is set wins over the limits that tasks have brought, until it is removed. The next claim
-- looks at the tasks that wait for the gate.
--
-- KEYS   the naming block
-- ARGV   1 now override · 2 gate, '' for the queue's own · 3 `<interval µs>:<burst>:<max working>`,
--        0 for none; '' to remove what was set
-- REPLY  OK, '1' if a limit was set before

local meta, limits = KEYS[1], KEYS[2]
local now, gate, limit = now_ms(ARGV[1]), ARGV[2], ARGV[3]

-- Checks.
local was_set = redis.call('HEXISTS', limits, gate)
local opening = opening_of(meta, gate)

-- Writes.
redis.call('HDEL', limits, limit == '' and gate or '-')
if limit ~= '' then
  redis.call('HSET', limits, gate, limit)
  write_limited(meta, opening.limited)
end
write_open(opening, now)
return { 'OK', whole(was_set) }
