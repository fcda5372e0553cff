-- ready: the line of tasks. This file alone writes `ready` and `priority`, and it alone rings.
--
-- An entry of `ready` is an id: in line since it was born. One that came into line later than that
-- is `<stamp>:<id>`.

-- One step of priority is worth a minute in line, so a low priority ages but never starves.
local PRIORITY_STEP_MS = 60000
local ID_LENGTH = 22

local STAMPED_LENGTH = 9 + ID_LENGTH

-- The id of an entry; nil if it is none of ours.
local function entry_id(entry)
  if #entry == ID_LENGTH then
    return entry
  end
  return #entry == STAMPED_LENGTH and string.sub(entry, 10) or nil
end

-- Since when it is in line.
local function entry_since(entry)
  return #entry == ID_LENGTH and born_ms(entry) or stamp_ms(string.sub(entry, 1, 8)) or 0
end

-- A doorbell holds one token at most: one waiter wakes, and rings again if it leaves work behind.
local function ring(wake)
  if redis.call('LLEN', wake) == 0 then
    redis.call('RPUSH', wake, '1')
  end
end

-- The priorities of some tasks, as a list with false for none; nil where no task has any.
local function priorities_of(priorities, ids)
  if #ids == 0 or redis.call('HLEN', priorities) == 0 then
    return nil
  end
  return redis.call('HMGET', priorities, unpack(ids))
end

-- Ranks tasks by `ranks`, in line since `since`, or each since its birth if that is nil.
local function rank(priority, wake, ids, ranks, since, now)
  local members = {}
  for i = 1, #ids do
    local from = since or math.min(born_ms(ids[i]), now)
    members[2 * i - 1] = whole(from - ranks[i] * PRIORITY_STEP_MS)
    members[2 * i] = ids[i]
  end
  for first = 1, #members, 4000 do
    redis.call('ZADD', priority, unpack(members, first, math.min(first + 3999, #members)))
  end
  if #ids > 0 then
    ring(wake)
  end
end

-- Those without a priority, then those with one and their ranks. `ranks` is of priorities_of.
local function split(ids, ranks)
  if not ranks then
    return ids, {}, {}
  end
  local plain, ranked, theirs = {}, {}, {}
  for i = 1, #ids do
    if ranks[i] then
      ranked[#ranked + 1] = ids[i]
      theirs[#ranked] = ranks[i]
    else
      plain[#plain + 1] = ids[i]
    end
  end
  return plain, ranked, theirs
end

-- Adds entries of tasks without a priority to the end of the line.
local function append(ready, wake, entries, first, last)
  for from = first, last, 4000 do
    local to = math.min(from + 3999, last)
    if redis.call('RPUSH', ready, unpack(entries, from, to)) == to - from + 1 then
      ring(wake)
    end
  end
end

-- Adds tasks to the end of the line, in it from now on.
local function line_up(ready, priority, wake, ids, ranks, now)
  local plain, ranked, theirs = split(ids, ranks)
  local entries, prefix = {}, stamp_of(now) .. ':'
  for i = 1, #plain do
    entries[i] = prefix .. plain[i]
  end
  append(ready, wake, entries, 1, #entries)
  rank(priority, wake, ranked, theirs, now, now)
end

-- Returns tasks to the front of the line, first one foremost, in it since their birth.
local function line_up_again(ready, priority, wake, ids, ranks, now)
  local plain, ranked, theirs = split(ids, ranks)
  for i = #plain, 1, -1 do
    if redis.call('LPUSH', ready, plain[i]) == 1 then
      ring(wake)
    end
  end
  rank(priority, wake, ranked, theirs, nil, now)
end
