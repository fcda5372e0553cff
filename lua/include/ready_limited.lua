-- ready_limited: which tasks are next in a queue with limits. A task that a gate refuses leaves the
-- ready list and waits for that gate, so that later claims need not pass it again. If the queue's
-- own gate refuses a task, no task can start, and all stay where they are.

-- A claim looks at this many tasks of the ready list, and at this many ranked ones.
local LOOKS_MAX = 128

-- Tasks in their order, with their records. `read(count)` returns `{ rank, id, … }`…, or nil.
local function source_of(tasks, first, read)
  local source = { items = first, at = 1 }

  -- Returns the record of the item at this place. The records of the next items that a claim wants
  -- are read with it.
  function source.record(place, most)
    local records = source.records or {}
    source.records = records
    if records[place] == nil then
      local ids = {}
      for i = place, math.min(place + math.max(most, 1) - 1, #source.items) do
        ids[#ids + 1] = source.items[i][2]
      end
      for i, record in ipairs(redis.call('HMGET', tasks, unpack(ids))) do
        records[place + i - 1] = record
      end
    end
    return records[place]
  end

  -- Returns the item at its place, nil after the last.
  function source.head()
    if not source.items[source.at] and source.is_cut and not source.is_read then
      source.is_read = true
      read(source)
    end
    return source.items[source.at]
  end
  return source
end

-- The entries of the ready list. A tombstone has no id.
local function add_entries(queue, source, entries, most)
  local skip = queue.has_tombstones and #entries > 0 and skips_of(queue.skips, entries) or {}
  source.skip, source.passed = skip, source.passed or {}
  for i = #source.items + 1, math.min(#entries, most) do
    source.items[i] = { nil, entry_id(entries[i]) or '', entry = entries[i] }
  end
  source.length, source.is_cut = #entries, #entries > most
end

local function ready_source(queue, entries, want)
  local source = source_of(queue.tasks, {}, function(source)
    add_entries(queue, source, redis.call('LRANGE', queue.ready, '0', whole(LOOKS_MAX)), LOOKS_MAX)
  end)
  add_entries(queue, source, entries, want)
  return source
end

local function ranked_source(queue, want)
  local function items(most)
    local found, ranked = {}, redis.call('ZRANGE', queue.priority, '0', whole(most), 'WITHSCORES')
    for i = 1, math.min(#ranked, 2 * most), 2 do
      found[#found + 1] = { tonumber(ranked[i + 1]), ranked[i] }
    end
    return found, #ranked > 2 * most
  end
  local first, is_cut = items(want)
  local source = source_of(queue.tasks, first, function(source)
    source.items, source.is_cut = items(LOOKS_MAX)
  end)
  source.is_cut = is_cut
  return source
end

-- The due tasks before the first one with a priority. They come after all others.
local function due_source(queue, due)
  local items = {}
  for i, id in ipairs(due.all) do
    if due.ranks and due.ranks[i] then
      break
    end
    items[i] = { math.huge, id }
  end
  return source_of(queue.tasks, items, nil)
end

-- The due tasks that a claim adds to the ready list, and their priorities.
local function due_left(due, source)
  local rest = { unpack(due.all, source.at) }
  return rest, due.ranks and { unpack(due.ranks, source.at, #due.all) }
end

-- Returns the rank of an item. That of an entry is only computed if something has to be compared.
local function rank_of(item)
  item[1] = item[1] or entry_since(item.entry)
  return item[1]
end

-- Whether an item is older than one of that rank and id. Ids of one ms are in their order, too.
local function is_before(item, rank, id)
  local own = rank_of(item)
  return own < rank or own == rank and item[2] < id
end

-- Takes the next of the sources by rank. The waiting come first: they are older.
local function next_source(waiting, ranked, ready, started)
  local best = waiting.head() and waiting
  for _, source in ipairs({ ranked, ready, started }) do
    local item, first = source.head(), best and best.items[best.at]
    if item and (not first or rank_of(item) < rank_of(first)
      or best == waiting and is_before(item, rank_of(first), first[2])) then
      best = source
    elseif not item and source.is_cut then
      -- A task that was not read may be the next.
      return nil
    end
  end
  return best
end

-- Whether an item that leaves the ready list is older than all that wait with it. It then need not
-- wait, too. A task that is given back to run alone would else never be the one that is claimed.
local function is_oldest(class, item)
  local first = #class.joined == 0
    and redis.call('ZRANGE', class.key, '0', '0', 'WITHSCORES') or {}
  return first[2] and is_before(item, tonumber(first[2]), first[1])
end

-- As `refusal_of`, but a task also waits for the tokens that a gate keeps for an older task. A task
-- that costs more than a gate has would else wait as long as others use the tokens as they come. A
-- task waits no longer than its own limit takes to get all tokens: an older one that has brought a
-- slower limit would make it as slow. Tasks of one ms do not wait for each other: two classes that
-- share two gates would send each other from gate to gate.
local function refusal_in_turn(gates, pass, item)
  local by, opens, lacks_tokens = refusal_of(gates, pass)
  for _, way in ipairs(by and by.name == '' and {} or pass) do
    if way.interval > 0 and way.gate.name ~= '' then
      local kept, since = line_at(gates, way.gate)
      if kept and kept > opens and rank_of(item) > since
        and kept <= math.ceil((gates.now_us + way.burst * way.interval) / 1000) then
        by, opens, lacks_tokens = way.gate, kept, true
      end
    end
  end
  return by, opens, lacks_tokens
end

-- As `mixed_ids`, and then the records, and the ms before which no claim is of use.
local function limited_ids(queue, entries, want, now)
  local due, next_due = { all = {}, delayed = {}, retry = {} }, queue.due_at
  local gates = gates_of(string.sub(queue.meta, 1, -5), now, false)
  local waiting = source_of(queue.tasks, {}, function(source)
    for _, item in ipairs(pull_more(gates, LOOKS_MAX)) do
      source.items[#source.items + 1] = item
    end
  end)
  if queue.is_due then
    due, next_due = due_now(queue, now)
    waiting.items = pull(gates, want)
    waiting.is_cut = gates.is_cut
    local later = redis.call('ZRANGEBYSCORE', gates.base .. 'gates', '(' .. whole(now), '+inf',
      'WITHSCORES', 'LIMIT', '0', '1')[2]
    later = gates.left_at or tonumber(later)
    next_due = later and math.min(next_due or later, later) or next_due
  end
  local ranked, ready = ranked_source(queue, want), ready_source(queue, entries, want)
  local started = due_source(queue, due)
  gates.is_any_waiting = redis.call('ZCARD', gates.base .. 'waits') > 0
  local ids, records, unranked, not_before = {}, {}, {}, nil
  while #ids < want do
    local source = next_source(waiting, ranked, ready, started)
    if not source then
      break
    end
    local item = source.items[source.at]
    local id, class = item[2], item[3]
    local is_skipped = class and class.waits_at
    if source == ready and (ready.skip[id] or 0) > (ready.passed[id] or 0) then
      ready.passed[id], is_skipped = (ready.passed[id] or 0) + 1, true
    end
    local record = not is_skipped and id ~= '' and source.record(source.at, want - #ids)
    local is_granted, leaves = record and true, not is_skipped
    local pass = record and pass_of(gates, record)
    if pass then
      local by, opens, lacks_tokens = refusal_in_turn(gates, pass, item)
      if by and by.name == '' then
        not_before, gates.is_stopped = opens, true
        break
      end
      local known = gates.classes and gates.classes[pass.class]
      if not class and (by or known or gates.is_any_waiting) then
        known = class_in(gates, pass.class)
      end
      if by and (class or known.left == 0) then
        note_refusal(class or known, by, opens, lacks_tokens, rank_of(item))
      end
      if by or not class and known and known.left > 0 and not is_oldest(known, item) then
        is_granted = false
        if class then
          leaves = false
        else
          local rank = rank_of(item)
          park(known, id, rank == math.huge and now or rank)
        end
      else
        take_pass(gates, pass, id)
      end
    end
    if is_granted then
      ids[#ids + 1], records[#records + 1] = id, record
    end
    if leaves and class then
      class.left, class.gone[#class.gone + 1] = class.left - 1, id
    elseif leaves and source == ranked then
      unranked[#unranked + 1] = id
    end
    source.at = source.at + 1
  end
  local from_ready = ready.at - 1
  local goes_on = ready.is_cut or ready.length > from_ready
  local next_open = settle(gates)
  next_due = next_open and math.min(next_due or next_open, next_open) or next_due
  read_gates(gates)
  local rest, rest_ranks = due_left(due, started)
  local more = goes_on or ranked.is_cut or #ranked.items >= ranked.at or #rest > 0
    or (next_due and next_due <= now)
  if not_before then
    more = false
  end

  local function write()
    redis.call('ZREM', gates.base .. 'gates', '')
    if #due.delayed > 0 then
      redis.call('ZREM', queue.delayed, unpack(due.delayed))
    end
    if #due.retry > 0 then
      redis.call('ZREM', queue.retry, unpack(due.retry))
    end
    if due.joins then
      write_joins(due.joins, now)
    end
    if due.write_gathered then
      due.write_gathered()
    end
    write_waits(gates)
    write_gates(gates)
    if #rest > 0 then
      add_ready(queue.ready, queue.priority, queue.wake, rest, rest_ranks, now)
    end
    if #unranked > 0 then
      redis.call('ZREM', queue.priority, unpack(unranked))
    end
    return #rest > 0
  end
  local function strike()
    strike_off(queue.skips, queue.meta, ready.passed, ready.skip)
  end
  return ids, from_ready, goes_on, more, next_due, write, strike, records, not_before
end
