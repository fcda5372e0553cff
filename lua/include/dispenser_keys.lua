-- dispenser_keys: the keys of a dispenser that a script builds itself, and what its hash says.

-- A later layout of these keys raises `needs`, and then these scripts refuse.
local DISPENSER_KNOWN = 1
-- A finished item is remembered for one to two of these spans, which are one key each.
local DONE_SPAN_MS = 3600000
-- A rebuild that takes longer could bring back an item that is no longer remembered.
local REBUILD_MAX_MS = 3600000

-- Reads what the dispenser says of itself: `newer`, the required number if it is above the known
-- one; the longest times that its callers have had; the latest span with a finished item, and until
-- when that counts if the clock was set back before it.
local function read_head(dispenser)
  local stored = redis.call('HMGET', dispenser, 'needs', 'hold', 'hold_max', 'span')
  local needs = stored[1]
  local span, span_until = string.match(stored[4] or '', '^(%d+) ?(%d*)$')
  return { newer = needs and tonumber(needs) > DISPENSER_KNOWN and needs or nil,
    hold_ms = tonumber(stored[2] or 0), hold_max_ms = tonumber(stored[3] or 0),
    span = tonumber(span), span_until = tonumber(span_until) }
end

-- Returns the keys of the finished items: the one that is written now, the one before it, and the
-- two of the latest span, if the clock was set back since.
local function done_keys(pool, now, head)
  local span = math.floor(now / DONE_SPAN_MS)
  local keys = { key_of(pool, 'done', whole(span)), key_of(pool, 'done', whole(span - 1)) }
  if head.span and head.span > span and not (head.span_until and head.span_until <= now) then
    keys[3] = key_of(pool, 'done', whole(head.span))
    keys[4] = key_of(pool, 'done', whole(head.span - 1))
  end
  return keys
end

-- Splits what `holders` says of an item: the ms when its time is over, and the assignee.
local function holder_of(text)
  local deadline, assignee = string.match(text, '^(%d+):(.*)$')
  return tonumber(deadline), assignee
end
