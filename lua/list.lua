-- list: one page of the tasks in a state, in the order in which they leave it; ended tasks with the
-- latest first
--
-- The cursor names the last task that was read. The next page begins after that task, even if tasks
-- came and left meanwhile: no task that stays in the state is omitted. A task may appear twice if
-- the task of the cursor has left, if it was cancelled in the ready list and requeued with a second
-- entry, or if it waits for its prerequisites. A page may have fewer rows than requested.
--
-- KEYS   the naming block
-- ARGV   1 state · 2 how many · 3 cursor, '' for the first page · 4 `oldest` for the dead and the
--        cancelled tasks with the oldest first, '' for the usual order
-- REPLY  OK, the cursor of the next page, '' if there is none; then for each task: id, worker that
--        holds it, ms when it is due or ended, of a ready one since when, if not since its submit;
--        header of its record, tries, its last error, the summary of a success

local meta, tasks, ready, priority, delayed = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local retry, dead, cancelled, workers, success = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local tries, errors, skips = KEYS[11], KEYS[12], KEYS[13]
local state, is_latest_first = ARGV[1], ARGV[4] ~= 'oldest'
local most = math.max(1, math.min(tonumber(ARGV[2]), 128))
local REPLY_MAX, WINDOW, WINDOWS_MAX, AHEAD = 262144, 1024, 4, 16
-- How many entries of the ready list are read at once if there are tombstones, and at most; and how
-- many tasks are looked for, because they may be in any other state.
local ENTRIES, ENTRIES_MAX, FINDS_MAX = 128, 1024, 64
-- How many tasks a step of a scan is asked for, and the most steps of a page. The fewer tasks a
-- step has, the fewer are shown again because one of them has left.
local STEP, STEPS_MAX = 1, 160
-- The text before the cursor's member, and the member. Ranked tasks come before the ready list.
local place, member = string.match(ARGV[3], '^(%S+) (.*)$')

-- Checks.
local rows, count, passed, next_cursor = {}, 0, 0, ''
-- What is known of the next tasks, by id: records, false if there is none; tries; error histories.
local records, counted, histories, ahead = {}, {}, {}, math.min(most, AHEAD)

-- Reads what `add` needs of the task at a place of a list and of some that follow: a command costs
-- as much as several fields.
local function look_ahead(ids, from, step)
  local some, last = {}, from + step * (ahead - 1)
  if records[ids[from]] ~= nil then
    return
  end
  for i = from, last, step do
    some[#some + 1] = ids[i]
  end
  local found, is_any = redis.call('HMGET', tasks, unpack(some)), false
  for i, id in ipairs(some) do
    records[id], is_any = found[i], is_any or found[i]
  end
  if not is_any then
    return
  end
  local tried = redis.call('HMGET', tries, unpack(some))
  local failed = redis.call('HMGET', errors, unpack(some))
  for i, id in ipairs(some) do
    counted[id], histories[id] = tried[i], failed[i]
  end
end

-- Adds a row. Returns false when the page is full: the next page begins after that task.
local function add(id, worker, at, summary)
  local header, tried, failure = '', '', ''
  local record = summary == '' and records[id]
  if record then
    header, tried = string.match(record, '^[^\n]*'), counted[id] or ''
    failure = histories[id] and last_line(histories[id]) or ''
  end
  rows[count + 1], rows[count + 2], rows[count + 3], rows[count + 4] = id, worker, at, header
  rows[count + 5], rows[count + 6], rows[count + 7] = tried, failure, summary
  count = count + 7
  passed = passed + #id + #worker + #at + #header + #tried + #failure + #summary
  return count < 7 * most and passed < REPLY_MAX
end

-- Reads a zset by score, or with the latest first.
local function list_zset(key, is_backwards, has_times, mark)
  local first, last = 0, redis.call('ZCARD', key) - 1
  if tonumber(place) then
    -- A member that left and came back with another score no longer shows the place.
    local at = redis.call('ZSCORE', key, member) == place and redis.call('ZRANK', key, member)
    if is_backwards then
      last = (at or redis.call('ZCOUNT', key, '-inf', place)) - 1
    else
      first = at and at + 1 or redis.call('ZCOUNT', key, '-inf', '(' .. place)
    end
  end
  local from, to, step
  if is_backwards then
    first = math.max(0, last - most + 1)
    from, to, step = 2 * (last - first) + 1, 1, -2
  else
    last = math.min(last, first + most - 1)
    from, to, step = 1, 2 * (last - first) + 1, 2
  end
  local found = last < first and {} or redis.call('ZRANGE', key, first, last, 'WITHSCORES')
  for i = from, to, step do
    look_ahead(found, i, step)
    local is_open = add(found[i], '', has_times and found[i + 1] or '', '')
    next_cursor = mark .. found[i + 1] .. ' ' .. found[i]
    if not is_open then
      return false
    end
  end
  next_cursor = ''
  return true
end

-- Returns the index of the cursor's entry in a list: the old index, or a lower one if earlier
-- entries left.
local function index_of(key)
  local last = tonumber(place) or -1
  for _ = 1, WINDOWS_MAX do
    if last < 0 then
      break
    end
    local first = math.max(0, last - WINDOW + 1)
    local entries = redis.call('LRANGE', key, first, last)
    for i = #entries, 1, -1 do
      if entries[i] == member then
        return first + i - 1
      end
    end
    last = first - 1
  end
  return nil, last
end

-- Adds the ready tasks of some entries of the ready list, which begin at an index. A task whose
-- entry is a tombstone may be in another state, mostly cancelled. `keys` is nil if there are no
-- tombstones. Returns whether the page goes on.
local function add_entries(entries, at, seen, keys)
  local ids, marked, gone, left = {}, {}, {}, {}
  for i, entry in ipairs(entries) do
    ids[i] = entry_id(entry) or ''
  end
  local skipped = keys and redis.call('HMGET', skips, unpack(ids)) or {}
  for i, id in ipairs(ids) do
    marked[#marked + 1] = skipped[i] and id or nil
  end
  local scores = #marked > 0 and redis.call('ZMSCORE', cancelled, unpack(marked)) or {}
  for i, id in ipairs(marked) do
    gone[id] = scores[i] and true
  end
  for _, id in ipairs(ids) do
    left[#left + 1] = not gone[id] and id or nil
  end
  local next_left = 0
  for i, id in ipairs(ids) do
    if not gone[id] then
      next_left = next_left + 1
      look_ahead(left, next_left, 1)
    end
    local is_ready = not gone[id] and not seen[id] and records[id]
    if is_ready and skipped[i] then
      keys.finds = keys.finds + 1
      is_ready = find(keys, id) == 'ready'
    end
    seen[id] = true
    local since = entry_since(entries[i])
    local is_open = not is_ready or add(id, '', since and whole(since) or '', '')
    next_cursor = whole(at + i) .. ' ' .. entries[i]
    if not is_open or keys and keys.finds >= FINDS_MAX then
      return false
    end
  end
  return true
end

-- Reads the ready list, and passes many tombstones in one call.
local function list_ready()
  local at, before = -1, nil
  if place then
    at, before = index_of(ready)
    at = at or before
  end
  local keys = redis.call('HLEN', skips) > 0 and { meta = meta, tasks = tasks, delayed = delayed,
    retry = retry, dead = dead, cancelled = cancelled, workers = workers, success = success,
    finds = 0 } or nil
  local size, seen = keys and ENTRIES or most, {}
  ahead = keys and AHEAD or ahead
  for _ = 1, ENTRIES_MAX / size do
    local entries = redis.call('LRANGE', ready, at + 1, at + size)
    if #entries > 0 and not add_entries(entries, at, seen, keys) then
      return
    end
    if #entries < size then
      next_cursor = ''
      return
    end
    at = at + size
  end
end

local function list_working()
  local names = redis.call('ZRANGE', workers, 0, -1)
  table.sort(names)
  for _, worker in ipairs(names) do
    if not place or worker >= place then
      local ids = redis.call('HKEYS', key_of(meta, 'working', worker))
      table.sort(ids)
      for i, id in ipairs(ids) do
        if id ~= LAST_CLAIM and (worker ~= place or id > member) then
          look_ahead(ids, i, 1)
          local is_open = add(id, worker, '', '')
          if not is_open then
            next_cursor = worker .. ' ' .. id
            return
          end
        end
      end
    end
  end
end

-- Reads the tasks that wait in lanes, by classes for gates, or by keys for runs. The one that waits
-- longest comes first. Returns whether the page has room for more.
local function list_waiting(index, kind, mark)
  local lanes, first, last_id, lane_name = string.sub(meta, 1, -5) .. index, 0, nil, nil
  if tonumber(place) then
    last_id, lane_name = string.match(member, '^(%S+) (.*)$')
    if lane_name and redis.call('ZSCORE', lanes, lane_name) == place then
      first = redis.call('ZRANK', lanes, lane_name)
    else
      last_id, first = nil, redis.call('ZCOUNT', lanes, '-inf', '(' .. place)
    end
  end
  local names = redis.call('ZRANGE', lanes, first, first + most, 'WITHSCORES')
  for i = 1, #names, 2 do
    local lane = key_of(meta, kind, names[i])
    local from = kind ~= 'wait' and redis.call('ZCOUNT', lane, '-inf', '(0') or 0
    local rank = last_id and redis.call('ZRANK', lane, last_id)
    from, last_id = rank and math.max(from, rank + 1) or from, nil
    local ids = redis.call('ZRANGE', lane, from, from + most - 1)
    for number, id in ipairs(ids) do
      look_ahead(ids, number, 1)
      local is_open = add(id, '', '', '')
      next_cursor = mark .. names[i + 1] .. ' ' .. id .. ' ' .. names[i]
      if not is_open then
        return false
      end
    end
  end
  next_cursor = ''
  return true
end

-- Returns the begin of the id of this run of Redis, in whose order a scan goes: after a restart or
-- a failover the scan begins again. '' if Redis does not tell it.
local function run_of_server()
  local info = redis.pcall('INFO', 'server')
  return type(info) == 'string' and string.match(info, 'run_id:(%x%x%x%x%x%x%x%x)') or ''
end

-- Tasks that wait for their prerequisites come after all others, in the order of a scan. A step of
-- it may return more than it was asked for, and a page may end in the middle. So each step has its
-- tasks in the order of their ids, and the cursor names the step by its begin and its end. If the
-- step no longer has that end, because tasks have left, the next page has all of it again.
local function list_unmet()
  local from, run = nil, run_of_server()
  if place then
    from = string.match(place, '^u(%d+)' .. (run ~= '' and '%.' .. run or '') .. '$')
  end
  local to, last
  if from then
    to, last = string.match(member, '^(%d+):(.+)$')
  end
  from, run = from or '0', run ~= '' and '.' .. run or ''
  for _ = 1, STEPS_MAX do
    local found = redis.call('HSCAN', string.sub(meta, 1, -5) .. 'unmet', from, 'COUNT', STEP)
    local ids, is_open = {}, true
    for i = 1, #found[2], 2 do
      if found[1] ~= to or found[2][i] > last then
        ids[#ids + 1] = found[2][i]
      end
    end
    table.sort(ids)
    for i, id in ipairs(ids) do
      look_ahead(ids, i, 1)
      is_open = add(id, '', '', '')
      if not is_open and i < #ids then
        next_cursor = 'u' .. from .. run .. ' ' .. found[1] .. ':' .. id
        return
      end
    end
    from, to = found[1], nil
    next_cursor = from ~= '0' and 'u' .. from .. run .. ' -' or ''
    if from == '0' or not is_open then
      return
    end
  end
end

local function list_success()
  local at = index_of(success)
  at = at or (not place and redis.call('LLEN', success)) or 0
  if at == 0 then
    return
  end
  local first = math.max(0, at - most)
  local summaries = redis.call('LRANGE', success, first, at - 1)
  for i = #summaries, 1, -1 do
    local id, ended_at = string.match(summaries[i], '^(%S+) (%d+)')
    local is_open = not id or add(id, '', ended_at, summaries[i])
    if not is_open or i == 1 and first > 0 then
      next_cursor = whole(first + i - 1) .. ' ' .. summaries[i]
      break
    end
  end
end

if state == 'ready' then
  local in_ready = place and string.sub(place, 1, 1) ~= 'p'
  if place and not in_ready then
    place = string.sub(place, 2)
  end
  if in_ready or list_zset(priority, false, false, 'p') then
    if not in_ready then
      place, member = nil, nil
    end
    list_ready()
  end
elseif state == 'blocked' then
  local begin = place and string.sub(place, 1, 1) or ''
  if begin == 'g' or begin == 'r' then
    place = string.sub(place, 2)
  end
  local is_open = begin ~= '' and string.find('ugr', begin) or list_waiting('lanes', 'lane', '')
  if is_open and begin ~= 'u' and begin ~= 'r' then
    if begin ~= 'g' then
      place, member = nil, nil
    end
    is_open = list_waiting('waits', 'wait', 'g')
  end
  if is_open and begin ~= 'u' then
    if begin ~= 'r' then
      place, member = nil, nil
    end
    is_open = list_waiting('gathers', 'gather', 'r')
  end
  if is_open and (begin == 'u' or count == 0) then
    list_unmet()
  elseif next_cursor == '' and redis.call('HLEN', string.sub(meta, 1, -5) .. 'unmet') > 0 then
    next_cursor = 'u0 -'
  end
elseif state == 'delayed' then
  list_zset(delayed, false, true, '')
elseif state == 'retry' then
  list_zset(retry, false, true, '')
elseif state == 'dead' then
  list_zset(dead, is_latest_first, true, '')
elseif state == 'cancelled' then
  list_zset(cancelled, is_latest_first, true, '')
elseif state == 'working' then
  list_working()
elseif state == 'success' then
  list_success()
end
return { 'OK', next_cursor, unpack(rows) }
