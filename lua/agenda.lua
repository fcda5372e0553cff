-- agenda: reads which schedules are due, and when the next one is
--
-- A schedule of a program's code counts only if the caller names it: only workers that have it in
-- their code tick it. The caller leaves out schedules that it can't read. If more are due than it
-- asks for, the reply begins at any of them, so that workers which look at once differ.
--
-- KEYS   the naming block
-- ARGV   1 now override · 2 how many at most · 3 a random number · 4 how many names the caller
--        leaves out · those names… · then the names of the caller's own code
-- REPLY  OK, now ms, ms until the next schedule that is not in this reply is due, -1 if none is;
--        the names of the caller's code that are not stored; for each that is due: name, ms when it
--        is due, and its edition, timing, record and payload, and '1' while it moves

local meta, schedules, code_schedules = KEYS[1], KEYS[2], KEYS[3]
local now, most = now_ms(ARGV[1]), tonumber(ARGV[2])
local random, unread = tonumber(ARGV[3]), tonumber(ARGV[4])
local FIRST_UNREAD = 5
local base = string.sub(meta, 1, -5)

-- Checks.
local missing, due, next_at, is_unread = {}, {}, math.huge, {}
local function add(name, at)
  if is_unread[name] then
    return
  elseif at > now or #due == most then
    next_at = math.min(next_at, at)
  else
    due[#due + 1] = { name, at }
  end
end
for place = FIRST_UNREAD, FIRST_UNREAD + unread - 1 do
  is_unread[ARGV[place]] = true
end
for place = FIRST_UNREAD + unread, #ARGV do
  local at = redis.call('ZSCORE', code_schedules, ARGV[place])
  if at then
    add(ARGV[place], tonumber(at))
  else
    missing[#missing + 1] = ARGV[place]
  end
end
local others = redis.call('ZCOUNT', schedules, '-inf', whole(now)) - most - unread
local first = 0
if others > 0 then
  first, next_at = random % (others + 1), now
end
local found = redis.call('ZRANGE', schedules, whole(first), whole(first + most + unread),
  'WITHSCORES')
for place = 1, #found, 2 do
  add(found[place], tonumber(found[place + 1]))
end
local rows = {}
for _, one in ipairs(due) do
  local facts = redis.call('HMGET', base .. 'schedule:' .. one[1], 'edition', 'timing', 'record',
    'blob', 'moving')
  if facts[1] then
    rows[#rows + 1], rows[#rows + 2] = one[1], whole(one[2])
    for place = 1, 5 do
      rows[#rows + 1] = facts[place] or ''
    end
  end
end
local wait = next_at == math.huge and -1 or math.max(next_at - now, 0)
return { 'OK', whole(now), whole(wait), missing, rows }
