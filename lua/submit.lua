-- submit: ∅ → Ready | Delayed, up to 1,000 tasks of one queue
--
-- Admits each task unless its biz id is taken, by a stored task or by an earlier one of this call.
-- The client's ledger keeps the answer of each call in a ring of slots, so a call that is sent
-- again because its reply was lost gets that answer and adds nothing. Refused whole when Redis is
-- full.
--
-- KEYS   the naming block, then the biz keys that options refer to
-- ARGV   1 now override · 2 client · 3 call number · 4 ledger slot · 5 '1' to be kept another day
--        6 count · 7 how many options · 8 the client's clock; then for each task: id, record; then
--        the options of those that are not plain, in the tasks' order; then blobs
--        options: `<position>;<due>;<priority>;<biz key>;<biz window ms>;<blob>;<stamp>` with due
--        `in<ms>`, `at<ms>` or ''; keys and blobs count from 1 behind the fixed part, 0 is none;
--        stamp is 1 to be told in the record when it was accepted, else 0
-- REPLY  OK, then `<position>=<owner id>` for each task whose biz id was taken
-- REFUSE FORGOTTEN

local meta, tasks, ready, priority, priorities = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local delayed, blobs, wake, ledger, ledgers = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local FIXED_KEYS = 10
local now, client, number, slot = now_ms(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local keep, count, options = ARGV[5] == '1', tonumber(ARGV[6]), tonumber(ARGV[7])
-- An id tells its birth by its client's clock, which must not make it older than others.
local clocks_agree = math.abs(now - tonumber(ARGV[8])) <= 1000
local FIRST_TASK = 9

-- Checks.
local answered = redis.call('HGET', ledger, slot)
if answered then
  local answered_number, answer = string.match(answered, '^(%d+):(.*)$')
  if answered_number == number then
    local reply = { 'OK' }
    for taken in string.gmatch(answer, '%S+') do
      reply[#reply + 1] = taken
    end
    return reply
  end
  if tonumber(answered_number) > tonumber(number) then
    return { 'FORGOTTEN' }
  end
end
redis.call('LLEN', ready)
redis.call('HLEN', tasks)
redis.call('LLEN', wake)
if keep then
  redis.call('ZCARD', ledgers)
end

local first_option = FIRST_TASK + 2 * count
local special, taken, owners, marks = {}, {}, {}, {}
local ranked, ranked_by, ranks, later, big = {}, {}, {}, {}, {}
for i = 0, options - 1 do
  local position, due, rank_of, biz, window, blob, stamped =
    string.match(ARGV[first_option + i], '^(%d+);(.-);(.-);(%d+);(%d+);(%d+);(%d)$')
  position = tonumber(position)
  local id = ARGV[FIRST_TASK + 2 * position - 2]
  local key = biz ~= '0' and KEYS[FIXED_KEYS + tonumber(biz)]
  local owner
  if key then
    owner = owners[key] or biz_owner(tasks, redis.call('GET', key), now)
    if owner == id then
      owner = nil
    end
  end
  if owner then
    taken[#taken + 1] = position .. '=' .. owner
    special[position] = 'taken'
  else
    if key then
      owners[key] = id
      marks[#marks + 1] = { key, biz_mark(id, window == '0' and 0 or now + tonumber(window)) }
    end
    if blob ~= '0' then
      big[#big + 1] = id
      big[#big + 1] = ARGV[first_option + options + tonumber(blob) - 1]
    end
    if rank_of ~= '' then
      ranks[#ranks + 1] = id
      ranks[#ranks + 1] = rank_of
    end
    if stamped == '1' then
      ARGV[FIRST_TASK + 2 * position - 1] = stamp_of(now) .. ARGV[FIRST_TASK + 2 * position - 1]
    end
    local unit, ms = string.match(due, '^(%a+)(%d+)$')
    local due_ms = unit == 'in' and now + tonumber(ms) or tonumber(ms or 0)
    if due_ms > now then
      later[#later + 1] = whole(due_ms)
      later[#later + 1] = id
      special[position] = 'later'
    elseif rank_of ~= '' then
      ranked[#ranked + 1] = id
      ranked_by[#ranked] = rank_of
      special[position] = 'ranked'
    end
  end
end
local line, plain = {}, 0
for i = 1, count do
  if not special[i] then
    plain = plain + 1
    line[plain] = ARGV[FIRST_TASK + 2 * i - 2]
  end
end
local records, first_record, last_record = ARGV, FIRST_TASK, first_option - 1
if #taken > 0 then
  records, first_record, last_record = {}, 1, 2 * (count - #taken)
  for i = 1, count do
    if special[i] ~= 'taken' then
      records[#records + 1] = ARGV[FIRST_TASK + 2 * i - 2]
      records[#records + 1] = ARGV[FIRST_TASK + 2 * i - 1]
    end
  end
end
local due_first = #later > 0 and redis.call('ZRANGE', delayed, '0', '0', 'WITHSCORES')[2]
if #ranks > 0 then
  redis.call('HLEN', priorities)
  redis.call('ZCARD', priority)
end
if #big > 0 then
  redis.call('HLEN', blobs)
end

-- Writes.
for first = first_record, last_record, 4000 do
  redis.call('HSET', tasks, unpack(records, first, math.min(first + 3999, last_record)))
end
redis.call('HSET', ledger, slot, number .. ':' .. table.concat(taken, ' '))
if keep then
  redis.call('ZADD', ledgers, whole(now), client)
end
for first = 1, #big, 4000 do
  redis.call('HSET', blobs, unpack(big, first, math.min(first + 3999, #big)))
end
for first = 1, #ranks, 4000 do
  redis.call('HSET', priorities, unpack(ranks, first, math.min(first + 3999, #ranks)))
end
for _, mark in ipairs(marks) do
  redis.call('SET', mark[1], mark[2])
end
if clocks_agree then
  append(ready, wake, line, 1, #line)
else
  line_up(ready, priority, wake, line, nil, now)
end
rank(priority, wake, ranked, ranked_by, now, now)
if #later > 0 then
  local earliest = tonumber(due_first or math.huge)
  for first = 1, #later, 4000 do
    redis.call('ZADD', delayed, unpack(later, first, math.min(first + 3999, #later)))
  end
  for i = 1, #later, 2 do
    if tonumber(later[i]) < earliest then
      ring(wake)
      break
    end
  end
end
table.insert(taken, 1, 'OK')
return taken
