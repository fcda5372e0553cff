-- gate: what limits the starts of tasks. A gate has a rate, a number of tasks that may be Working
-- at once, or is shut; '' is the gate of the queue. `limits` has what was set at run time, which
-- wins over what tasks have brought; `shut` has the ms until which a gate is shut, `inf` while it
-- is paused; `spent` the time in µs at which a gate has all its tokens again; `busy:<gate>` the
-- tasks with a permit, by the ms since when; `loans` permits outside tasks, `<gate>\n<permit>` by
-- the ms when they end.

-- A call ends at most this many loans.
local LOANS_MAX = 16
-- A call forgets at most this many gates that have all their tokens again. It spends from fewer.
local FORGOTTEN_MAX = '256'
-- From this many entries on, a search through all of them costs more than a table.
local TABLE_FROM = 16

local function gate_in(gates, name)
  local gate = gates.named[name]
  if gate then
    return gate
  end
  gate = { name = name, shut_until = 0, taken = {} }
  gates.named[name] = gate
  gates.used[#gates.used + 1] = gate
  local set = gates.is_set and redis.call('HGET', gates.base .. 'limits', name)
  if set then
    local interval, burst, most = string.match(set, '^(%d+):(%d+):(%d+)$')
    gate.set = { tonumber(interval), tonumber(burst), tonumber(most) }
  end
  local shut = gates.is_shut and redis.call('ZSCORE', gates.base .. 'shut', name)
  if shut then
    gate.shut_until = shut == 'inf' and math.huge or tonumber(shut)
  end
  return gate
end

-- The loans that are over, and the ms at which the next one ends.
local function end_loans(gates)
  local key = gates.base .. 'loans'
  if redis.call('ZCARD', key) == 0 then
    return
  end
  gates.ended = redis.call('ZRANGEBYSCORE', key, '-inf', whole(gates.now), 'LIMIT', '0',
    whole(LOANS_MAX))
  for _, loan in ipairs(gates.ended) do
    local name, permit = string.match(loan, '^([^\n]*)\n(.*)$')
    local gate = gate_in(gates, name)
    gate.ended = gate.ended or {}
    gate.ended[#gate.ended + 1] = permit
    -- A permit from before the gate had a number of permits does not count.
    local counts = redis.call('ZSCORE', gates.base .. 'busy:' .. name, permit)
    gate.freed = (gate.freed or 0) + (counts and 1 or 0)
  end
  local next_end = redis.call('ZRANGEBYSCORE', key, '(' .. whole(gates.now), '+inf', 'WITHSCORES',
    'LIMIT', '0', '1')[2]
  gates.loans_end = #gates.ended == LOANS_MAX and gates.now + 1 or tonumber(next_end)
end

-- What a call knows of gates. `is_bare` is true if nothing is set, shut or lent.
local function gates_of(base, now, is_bare)
  local gates = { base = base, now = now, now_us = now * 1000, named = {}, used = {}, passes = {},
    permits = {}, ended = {}, is_set = false, is_shut = false }
  if not is_bare then
    gates.is_set = redis.call('HLEN', base .. 'limits') > 0
    gates.is_shut = redis.call('ZCARD', base .. 'shut') > 0
    end_loans(gates)
  end
  return gates
end

-- Adds the gate to the way of a task, if it limits anything.
local function add_way(gates, pass, name, brought)
  local gate = gate_in(gates, name)
  local limit = gate.set or brought
  if gate.shut_until > gates.now or limit and (limit[1] > 0 or limit[3] > 0) then
    local way = { gate = gate, interval = 0, burst = 1, most = 0, cost = pass.cost }
    if limit then
      way.interval, way.burst, way.most = limit[1], math.max(limit[2], 1), limit[3]
      way.cost = math.min(pass.cost, way.burst)
    end
    pass[#pass + 1] = way
  end
end

-- The gates that limit a task with this record, the queue's first, and the task's class. A record
-- without limits has none unless some are set or shut.
local function pass_of(gates, record)
  local start = string.byte(record) == 123 and 1 or 9
  if not (gates.is_set or gates.is_shut)
    and string.sub(record, start, start + 4) ~= '{"v":' then
    return nil
  end
  local text = string.sub(record, start, string.find(record, '\n', start, true))
  local pass = gates.passes[text]
  if not pass then
    local header = header_of(text)
    local names, brought = gates_of_header(header)
    pass = { class = class_of(names), cost = math.max(tonumber(header.gc) or 1, 1) }
    add_way(gates, pass, '', nil)
    for _, name in ipairs(names) do
      add_way(gates, pass, name, brought[name])
    end
    gates.passes[text] = pass
  end
  return pass
end

-- Returns the time in µs at which the gate has all its tokens again. It is at most the time for the
-- whole burst away. If it is further away, because the clock was set back or the rate is higher
-- now, that time is stored, so that tokens come from now on.
local function full_at(gates, way)
  local gate, latest = way.gate, gates.now_us + way.burst * way.interval
  if not gate.full_at then
    local stored = redis.call('ZSCORE', gates.base .. 'spent', gate.name)
    gate.full_at, gates.is_first = tonumber(stored or 0), gates.is_first or not stored
  end
  if gate.full_at > latest then
    gate.full_at, gate.is_spent = latest, true
  end
  return math.max(gates.now_us, gate.full_at)
end

local function busy_at(gates, gate)
  if not gate.busy then
    local size = redis.call('ZCARD', gates.base .. 'busy:' .. gate.name)
    gate.busy = size - (gate.freed or 0)
  end
  return gate.busy
end

-- Returns the gate that keeps a task waiting, the one that opens last, the ms at which it may open,
-- and whether it lacks tokens until then; nil if none does. A gate that is paused or has no permit
-- opens by another call.
local function refusal_of(gates, pass)
  local by, opens, lacks_tokens = nil, 0, false
  for _, way in ipairs(pass) do
    local at, tokens_at = way.gate.shut_until, 0
    if way.most > 0 and busy_at(gates, way.gate) >= way.most then
      at = math.max(at, gates.loans_end or math.huge)
    end
    if way.interval > 0 then
      tokens_at =
        math.ceil((full_at(gates, way) + (way.cost - way.burst) * way.interval) / 1000)
      at = math.max(at, tokens_at)
    end
    if at > gates.now and at > opens then
      by, opens, lacks_tokens = way.gate, at, at == tokens_at
      if by.name == '' then
        break
      end
    end
  end
  return by, opens, lacks_tokens
end

-- Takes the tokens and permits of all its gates for a task.
local function take_pass(gates, pass, id)
  local permits = ''
  for _, way in ipairs(pass) do
    local gate = way.gate
    if way.interval > 0 then
      gate.full_at, gate.is_spent = full_at(gates, way) + way.cost * way.interval, true
    end
    if way.most > 0 then
      gate.busy = gate.busy + 1
      gate.taken[#gate.taken + 1], gate.taken[#gate.taken + 2] = whole(gates.now), id
      permits = permits .. gate.name .. '\n'
    end
  end
  if permits ~= '' then
    gates.permits[#gates.permits + 1], gates.permits[#gates.permits + 2] = id, permits
  end
end

-- Reads the keys that `write_gates` writes and nothing has read. A call that may add gates to
-- `spent` forgets others.
local function read_gates(gates)
  if #gates.permits > 0 then
    gates.held = redis.call('HLEN', gates.base .. 'permits')
    -- While some tasks have permits, the mark is set.
    gates.is_unmarked = gates.held == 0 and not has_end_mark(gates.base, 'permits')
  end
  gates.whole = gates.is_first and redis.call('ZRANGEBYSCORE', gates.base .. 'spent', '-inf',
    whole(gates.now_us), 'LIMIT', '0', FORGOTTEN_MAX) or {}
end

-- Returns what `zadd_as_table` and `hset_as_table` take for the size of a key. A small key that
-- grows past the bound becomes a table; below it, a table costs more than a scan.
local function size_for_table(size, values)
  return size < TABLE_FROM and size + #values / 2 >= TABLE_FROM and 0 or TABLE_FROM
end

local function write_gates(gates)
  local spent, forgotten = {}, {}
  if gates.is_shut then
    redis.call('ZREMRANGEBYSCORE', gates.base .. 'shut', '-inf', whole(gates.now))
  end
  if #gates.ended > 0 then
    redis.call('ZREM', gates.base .. 'loans', unpack(gates.ended))
  end
  for _, gate in ipairs(gates.used) do
    if gate.is_spent then
      spent[#spent + 1], spent[#spent + 2] = whole(gate.full_at), gate.name
    end
    if #gate.taken > 0 then
      local before = gate.busy - #gate.taken / 2
      local size = size_for_table(before, gate.taken)
      zadd_as_table(gates.base .. 'busy:' .. gate.name, size, gate.taken)
    end
    if gate.ended and #gate.ended > 0 then
      redis.call('ZREM', gates.base .. 'busy:' .. gate.name, unpack(gate.ended))
    end
  end
  if #spent > 0 then
    redis.call('ZADD', gates.base .. 'spent', unpack(spent))
  end
  for _, name in ipairs(gates.whole) do
    if not (gates.named[name] and gates.named[name].is_spent) then
      forgotten[#forgotten + 1] = name
    end
  end
  if #forgotten > 0 then
    redis.call('ZREM', gates.base .. 'spent', unpack(forgotten))
  end
  if #gates.permits > 0 then
    hset_as_table(gates.base .. 'permits', size_for_table(gates.held, gates.permits), gates.permits)
    if gates.is_unmarked then
      set_end_mark(gates.base, 'permits')
    end
  end
end
