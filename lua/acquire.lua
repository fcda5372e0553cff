-- acquire: takes a token and a permit of a gate outside tasks
--
-- The permit is a loan: it ends with its lease unless it is given back or renewed before. A repeat
-- under the same name takes nothing more. Only what was set at run time limits such calls.
--
-- KEYS   the naming block
-- ARGV   1 now override · 2 gate · 3 cost · 4 name of the permit · 5 lease ms
-- REPLY  OK, '0' if it is granted, else the ms until it may be; -1 if another permit must be given
--        back before, or the gate is paused

local meta, loans = KEYS[1], KEYS[2]
local now, name, cost, permit = now_ms(ARGV[1]), ARGV[2], tonumber(ARGV[3]), ARGV[4]
local lease_ms = tonumber(ARGV[5])
local loan = name .. '\n' .. permit

local function remove_value(list, value)
  for i = #list, 1, -1 do
    if list[i] == value then
      table.remove(list, i)
    end
  end
end

-- Checks.
if tonumber(redis.call('ZSCORE', loans, loan) or 0) > now then
  return { 'OK', '0' }
end
local gates = gates_of(string.sub(meta, 1, -5), now, false)
local opening = opening_of(meta, name)
local pass = { cost = cost }
add_way(gates, pass, name, nil)
local by, opens = refusal_of(gates, pass)
if not by then
  take_pass(gates, pass, permit)
  gates.permits = {}
  -- A loan of this name that is over begins again.
  remove_value(gates.ended, loan)
  remove_value(gates.named[name].ended or {}, permit)
end
read_gates(gates)

-- Writes.
redis.call('ZREM', loans, '')
if by then
  write_gates(gates)
  return { 'OK', opens == math.huge and '-1' or whole(opens - now) }
end
redis.call('ZADD', loans, whole(now + lease_ms), loan)
write_gates(gates)
write_limited(meta, opening.limited)
return { 'OK', '0' }
