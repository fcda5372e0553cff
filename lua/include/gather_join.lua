-- gather_join: tasks that join those with which they run.

-- From this many tasks on, a key is a table.
local TABLE_FROM = 16

-- A list of the keys that tasks join. `count` counts these tasks.
local function gathers_of(meta)
  local base = string.sub(meta, 1, -5)
  return { base = base, meta = meta, gathers = base .. 'gathers', named = {}, count = 0 }
end

-- Returns whether the next run of the key starts at once. Tasks may state different maxima: the
-- smallest of them counts. While a task leads, more tasks change nothing.
local function is_enough(one, max)
  if one.waiting > max and one.is_led == nil then
    one.is_led = redis.call('ZCOUNT', one.key, '-1', '-1') > 0
  end
  return one.waiting == max or one.waiting > max and not one.is_led
end

-- Adds a task to a key. A task that comes back has its birth as its score, and makes the key due
-- soon.
local function join_gather(joins, run, id, now, since)
  local one = joins.named[run.name]
  if not one then
    one = { name = run.name, key = run.key, add = {},
      waiting = redis.call('ZCOUNT', run.key, '0', '+inf'),
      due = tonumber(redis.call('ZSCORE', joins.gathers, run.name)) }
    one.due_before = one.due
    joins.named[run.name], joins[#joins + 1] = one, one
  end
  joins.now = joins.now or whole(now)
  one.add[#one.add + 1], one.add[#one.add + 2] = since and whole(since) or joins.now, id
  one.waiting, joins.count = one.waiting + 1, joins.count + 1
  local back = BACK_MS + math.floor(run.max / BACK_TASKS_PER_MS)
  local due = now + (since and math.min(run.wait, back) or run.wait)
  if is_enough(one, run.max) then
    one.due = math.min(one.due or now, now)
  elseif not one.due or since and due < one.due then
    one.due = due
  end
end

-- Returns when the first of the changed keys is due, nil if none changes.
local function first_gather(joins)
  local first = nil
  for _, one in ipairs(joins) do
    if one.due ~= one.due_before then
      first = math.min(first or one.due, one.due)
    end
  end
  return first
end

local function write_gathers(joins)
  local dues = {}
  for _, one in ipairs(joins) do
    -- Among few tasks, a search through all of them costs less than a table.
    local before = one.waiting - #one.add / 2
    local becomes_table = before < TABLE_FROM and one.waiting >= TABLE_FROM
    zadd_as_table(one.key, becomes_table and 0 or before + 1, one.add)
    if one.due ~= one.due_before then
      dues[#dues + 1], dues[#dues + 2] = whole(one.due), one.name
    end
  end
  if #dues > 0 then
    redis.call('ZADD', joins.gathers, unpack(dues))
  end
  if joins.count > 0 then
    redis.call('HINCRBY', joins.meta, 'blocked', joins.count)
  end
end
