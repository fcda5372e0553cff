-- ready: the ready list, and the ranked tasks. `ready_append` and
-- `ready_again` add to them, too, and no other include does.

-- One step of priority equals a minute of waiting, so a low priority ages but never starves.
local PRIORITY_STEP_MS = 60000

-- Returns the priorities of some tasks, as a list with false for a task without one; nil if no task
-- has one.
local function priorities_of(priorities, ids)
  if #ids == 0 or redis.call('HLEN', priorities) == 0 then
    return nil
  end
  return redis.call('HMGET', priorities, unpack(ids))
end

-- Ranks tasks by `ranks`. They are ready since `since`, or each since its birth in `births`.
local function rank(priority, wake, ids, ranks, since, births)
  local members = {}
  for i = 1, #ids do
    local from = births and births[i] or since
    members[2 * i - 1] = whole(from - ranks[i] * PRIORITY_STEP_MS)
    members[2 * i] = ids[i]
  end
  for first = 1, #members, 4000 do
    redis.call('ZADD', priority, unpack(members, first, math.min(first + 3999, #members)))
  end
  if #ids > 0 then
    wake_worker(wake)
  end
end

-- Returns the tasks without a priority, the tasks with one, and the ranks of the latter. `ranks` is
-- the result of priorities_of.
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

-- Adds tasks to the end of the ready list. They are ready from now on.
local function add_ready(ready, priority, wake, ids, ranks, now)
  local plain, ranked, theirs = split(ids, ranks)
  local entries, prefix = {}, stamp_of(now) .. ':'
  for i = 1, #plain do
    entries[i] = prefix .. plain[i]
  end
  append(ready, wake, entries)
  rank(priority, wake, ranked, theirs, now)
end
