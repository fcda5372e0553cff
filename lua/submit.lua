-- submit: ∅ → Ready | Delayed, up to 1,000 tasks of one queue
--
-- Admits each task unless its biz id is taken, by a stored task or by an earlier one of this call.
-- The client's ledger keeps the answer of each call in a ring of slots, so a call that is sent
-- again because its reply was lost gets that answer and adds nothing. Refused whole when Redis is
-- full.
--
-- KEYS   the naming block, then the biz keys that options refer to
-- ARGV   1 now override · 2 client · 3 call number · 4 ledger slots · 5 '1' to be kept another day
--        6 count, then for each: id, options, header and payload; then blobs
--        options: '' or `<due>;<priority>;<biz key index>;<biz window ms>;<blob index>` with due
--        `in<ms>`, `at<ms>` or ''; an index counts from 1 behind the fixed part, 0 is none
-- REPLY  OK, then `<position>=<owner id>` for each task whose biz id was taken
-- REFUSE FORGOTTEN

local meta, tasks, ready, priority, priorities = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local delayed, blobs, wake, ledger, ledgers = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local FIXED_KEYS = 10
local now, client, number, slots = now_ms(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4])
local keep, count = ARGV[5] == '1', tonumber(ARGV[6])
local FIXED_ARGS = 6

-- Checks.
local slot = whole(tonumber(number) % slots)
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

local stamp = stamp_of(now)
local records, line, ranked, ranks, later, big, marks = {}, {}, {}, {}, {}, {}, {}
local taken, owners = {}, {}
for i = 1, count do
  local at = FIXED_ARGS + 3 * (i - 1)
  local id, options = ARGV[at + 1], ARGV[at + 2]
  local owner
  if options == '' then
    line[#line + 1] = id
  else
    local due, rank, biz, window, blob =
      string.match(options, '^(.-);(.-);(%d+);(%d+);(%d+)$')
    local key = biz ~= '0' and KEYS[FIXED_KEYS + tonumber(biz)]
    if key then
      owner = owners[key] or biz_owner(tasks, redis.call('GET', key), now)
      if owner == id then
        owner = nil
      end
    end
    if owner then
      taken[#taken + 1] = i .. '=' .. owner
    else
      if key then
        owners[key] = id
        marks[#marks + 1] = { key, biz_mark(id, window == '0' and 0 or now + tonumber(window)) }
      end
      if blob ~= '0' then
        big[#big + 1] = id
        big[#big + 1] = ARGV[FIXED_ARGS + 3 * count + tonumber(blob)]
      end
      if rank ~= '' then
        ranks[#ranks + 1] = id
        ranks[#ranks + 1] = rank
      end
      local unit, ms = string.match(due, '^(%a+)(%d+)$')
      local due_ms = unit == 'in' and now + tonumber(ms) or tonumber(ms or 0)
      if due_ms > now then
        later[#later + 1] = whole(due_ms)
        later[#later + 1] = id
      elseif rank ~= '' then
        ranked[#ranked + 1] = id
      else
        line[#line + 1] = id
      end
    end
  end
  if not owner then
    records[#records + 1] = id
    records[#records + 1] = stamp .. ARGV[at + 3]
  end
end
local due_first = redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')[2]
if #ranks > 0 then
  redis.call('HLEN', priorities)
  redis.call('ZCARD', priority)
end
if #big > 0 then
  redis.call('HLEN', blobs)
end

-- Writes.
for first = 1, #records, 4000 do
  redis.call('HSET', tasks, unpack(records, first, math.min(first + 3999, #records)))
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
local stamps = {}
for i = 1, math.max(#line, #ranked) do
  stamps[i] = stamp
end
line_up(ready, priority, wake, line, stamps, nil, false)
if #ranked > 0 then
  line_up(ready, priority, wake, ranked, stamps, priorities_of(priorities, ranked), false)
end
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
