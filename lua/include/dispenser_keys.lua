-- dispenser_keys: the keys of a dispenser that a script builds itself, and what its meta requires.

-- A later layout of these keys raises `needs`, and then these scripts refuse.
local DISPENSER_KNOWN = 1
-- A finished item is remembered for one to two of these spans, which are one key each.
local DONE_SPAN_MS = 3600000
-- A rebuild that takes longer could bring back an item that is no longer remembered.
local REBUILD_MAX_MS = 3600000

-- Returns the required number if it is above the known one.
local function newer_needs(dispenser)
  local needs = redis.call('HGET', dispenser, 'needs')
  return needs and tonumber(needs) > DISPENSER_KNOWN and needs or nil
end

-- Returns the keys of the finished items: the one that is written now, and the one before it.
local function done_keys(pool, now)
  local span = math.floor(now / DONE_SPAN_MS)
  return key_of(pool, 'done', whole(span)), key_of(pool, 'done', whole(span - 1))
end

-- Splits what `holders` says of an item: the ms when its time is over, and the assignee.
local function holder_of(text)
  local deadline, assignee = string.match(text, '^(%d+):(.*)$')
  return tonumber(deadline), assignee
end
