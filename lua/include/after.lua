-- after: tasks that wait for other tasks, their prerequisites. `unmet` has, for each task that
-- waits, one mark for each prerequisite that is not met, then possibly `;<due ms>;<flags>`. `ties`
-- has who waits for a reference: `<id><mark>` or `<id><mark>@<queue>`, or `*` if they are in the
-- zset `after:<reference>`, by the order in which they came. A script changes both here in memory
-- and writes each once.

-- The mark of a prerequisite whose result is taken. It is always the first one.
local TAKEN = 'z'
-- Whether a prerequisite with this mark is the first one, which is the step before a step.
local function is_former(mark)
  return mark == '0' or mark == TAKEN
end

-- An end that no requeue can change: a group was cancelled, or a task because of that. Those who
-- wait are cancelled, also if their policy is to wait.
local VOID = 'void'
-- A reference with more waiters than this many bytes has a zset.
local TIE_BYTES_MAX = 1024

-- Reads fields of a hash that are not cached yet.
local function load(cache, key, fields)
  for first = 1, #fields, 1000 do
    local last = math.min(first + 999, #fields)
    local values = redis.call('HMGET', key, unpack(fields, first, last))
    for i = first, last do
      if cache.now[fields[i]] == nil then
        cache.now[fields[i]] = values[i - first + 1]
      end
    end
  end
end

local function cached(cache, key, field)
  if cache.now[field] == nil then
    cache.now[field] = redis.call('HGET', key, field)
  end
  return cache.now[field]
end

-- Changes a field; false removes it.
local function change(cache, field, value)
  if not cache.is_changed[field] then
    cache.is_changed[field] = true
    cache.changed[#cache.changed + 1] = field
  end
  cache.now[field] = value
end

-- The same for a field that no earlier step of the call has set, and none sets again. This costs
-- Redis half as much.
local function add(cache, field, value)
  local size = #cache.set
  cache.set[size + 1], cache.set[size + 2], cache.now[field] = field, value, value
end

local function has_changes(cache)
  return #cache.changed > 0 or #cache.set > 0
end

local function remove(cache, field)
  cache.gone[#cache.gone + 1], cache.now[field] = field, false
end

-- Fields are set before others are removed, so that no hash is emptied and written again.
local function write_changes(cache, key)
  local set, gone = cache.set, cache.gone
  for _, field in ipairs(cache.changed) do
    if cache.now[field] then
      set[#set + 1], set[#set + 2] = field, cache.now[field]
    else
      gone[#gone + 1] = field
    end
  end
  for first = 1, #set, 4000 do
    hset_as_table(key, first == 1 and cache.size or 1, { unpack(set, first, math.min(first + 3999,
      #set)) })
  end
  for first = 1, #gone, 4000 do
    redis.call('HDEL', key, unpack(gone, first, math.min(first + 3999, #gone)))
  end
end

local function cache_of()
  return { now = {}, changed = {}, is_changed = {}, set = {}, gone = {} }
end

-- What a call does to tasks that wait for others.
local function flow_of(meta)
  local base = string.sub(meta, 1, -5)
  return { meta = meta, base = base, own = string.match(base, ':([^:]*):[^:]*}:$'),
    unmet_key = base .. 'unmet', ties_key = base .. 'ties', unmet = cache_of(), ties = cache_of(),
    many = {}, many_refs = {}, free = {}, asks_gone = {}, giveups_gone = {}, targets = {},
    outboxes = {}, is_gone = {}, is_step = {} }
end

-- The waiters of a reference that has a zset.
local function many_of(flow, ref)
  local many = flow.many[ref]
  if not many then
    local key = flow.base .. 'after:' .. ref
    local last = redis.call('ZRANGE', key, '-1', '-1', 'WITHSCORES')[2]
    many = { key = key, size = redis.call('ZCARD', key), last = tonumber(last or 0), is_in = {},
      order = {}, at = {} }
    flow.many[ref] = many
    flow.many_refs[#flow.many_refs + 1] = ref
  end
  return many
end

local function change_many(flow, ref, waiter, is_in)
  local many = many_of(flow, ref)
  local was_in = many.is_in[waiter]
  if was_in == nil then
    was_in = many.size > 0 and redis.call('ZSCORE', many.key, waiter) and true or false
    many.order[#many.order + 1] = waiter
  end
  many.is_in[waiter] = is_in
  if is_in and not was_in then
    many.last = many.last + 1
    many.at[waiter] = whole(many.last)
  end
  if was_in ~= is_in then
    many.size = many.size + (is_in and 1 or -1)
  end
  if many.size == 0 then
    change(flow.ties, ref, false)
  end
end

local function tie(flow, ref, waiter)
  local value = cached(flow.ties, flow.ties_key, ref)
  if value == '*' then
    change_many(flow, ref, waiter, true)
  elseif not value then
    add(flow.ties, ref, waiter)
  elseif #value + #waiter > TIE_BYTES_MAX then
    change(flow.ties, ref, '*')
    for one in string.gmatch(value, '%S+') do
      change_many(flow, ref, one, true)
    end
    change_many(flow, ref, waiter, true)
  elseif not string.find(' ' .. value .. ' ', ' ' .. waiter .. ' ', 1, true) then
    change(flow.ties, ref, value .. ' ' .. waiter)
  end
end

local function untie(flow, ref, waiter)
  local value = cached(flow.ties, flow.ties_key, ref)
  if value == '*' then
    change_many(flow, ref, waiter, false)
  elseif value then
    local left = {}
    for one in string.gmatch(value, '%S+') do
      if one ~= waiter then
        left[#left + 1] = one
      end
    end
    change(flow.ties, ref, #left > 0 and table.concat(left, ' '))
  end
end

local function write_ties(flow)
  for _, ref in ipairs(flow.many_refs) do
    local many, come, go = flow.many[ref], {}, {}
    for _, waiter in ipairs(many.order) do
      if many.is_in[waiter] and many.at[waiter] then
        come[#come + 1], come[#come + 2] = many.at[waiter], waiter
      elseif not many.is_in[waiter] then
        go[#go + 1] = waiter
      end
    end
    for first = 1, #come, 4000 do
      redis.call('ZADD', many.key, unpack(come, first, math.min(first + 3999, #come)))
    end
    if #go > 0 then
      redis.call('ZREM', many.key, unpack(go))
    end
  end
  write_changes(flow.ties, flow.ties_key)
end

-- The refs and flags of a task in `unmet`: `l` has a lane, `e` asks, `g` gives up, `s` is a step
-- that was stored before the step that it follows.
local function parts_of(value)
  local marks, due, flags = string.match(value, '^(%w*);(%d*);(%a*)$')
  return marks or value, tonumber(due), flags or ''
end

local function leaves_unmet(flow, id, flags)
  change(flow.unmet, id, false)
  if string.find(flags, 'e', 1, true) then
    redis.call('ZCARD', flow.base .. 'asks')
    flow.asks_gone[#flow.asks_gone + 1] = id
  end
  if string.find(flags, 'g', 1, true) then
    redis.call('ZCARD', flow.base .. 'giveups')
    flow.giveups_gone[#flow.giveups_gone + 1] = id
  end
end

local function write_unmet(flow)
  write_changes(flow.unmet, flow.unmet_key)
  if #flow.asks_gone > 0 then
    redis.call('ZREM', flow.base .. 'asks', unpack(flow.asks_gone))
  end
  if #flow.giveups_gone > 0 then
    redis.call('ZREM', flow.base .. 'giveups', unpack(flow.giveups_gone))
  end
end
