-- group_complete: the members of groups among a call of completions.

-- The byte of `&`.
local MEMBER_MARK = 38

-- Returns position, result, … of the members of a group, except of those that another worker holds.
local function values_of(group, is_held)
  local ARGV, values, size = ARGV, {}, 0
  for _, run in ipairs(group.runs) do
    local at, shared, step = run.at, run.shared, run.shared and 1 or 2
    for position = run.first, run.last do
      if not is_held or is_held[position] then
        values[size + 1] = ARGV[at]
        values[size + 2] = shared or ARGV[at + 1]
        size = size + 2
      end
      at = at + step
    end
  end
  return values
end

-- Returns the members of groups, and the position after them. The members are the words from `at`.
-- `here` has the position and the result of each, by groups of this queue; `there` has an effect
-- for each member of a group elsewhere. Reads the keys that `write_members` writes.
local function read_members(base, first_id, at, past, is_held)
  local members = { base = base, here = {}, there = {} }
  local by_gid = {}
  while at < past and string.byte(ARGV[at]) == MEMBER_MARK do
    local first, last, most, home, sharing, gid =
      string.match(ARGV[at], '^&(%d+):(%d+);(%d+);([^;]*);(=?)(.*)$')
    local shared = sharing ~= '' and ARGV[at + 1] or nil
    local group = by_gid[gid]
    first, last, at = tonumber(first), tonumber(last), at + (shared and 2 or 1)
    local step = shared and 1 or 2
    if home == '' and not group then
      group = group_of(base, gid)
      if group then
        members.here[#members.here + 1], by_gid[gid], group.runs, group.count = group, group, {}, 0
      end
    end
    if home == '' and group then
      group.runs[#group.runs + 1] = { first = first, last = last, at = at, shared = shared }
      group.count = group.count + last - first + 1
      group.has_foreign = group.has_foreign or most + 0 >= group.total
    elseif home ~= '' then
      for position = first, last do
        local word = at + step * (position - first)
        if not is_held or is_held[position] then
          members.there[#members.there + 1] = { home = home, gid = gid, index = ARGV[word],
            id = ARGV[first_id + position - 1], result = shared or ARGV[word + 1] }
        end
      end
    end
    at = at + step * (last - first + 1)
  end
  return members, at
end

-- Keeps only the members that have not counted yet, and finds those of them that were lost.
local function keep_new(group)
  local indexes, values, seen = {}, {}, {}
  for i = 1, #group.values, 2 do
    indexes[#indexes + 1] = group.values[i]
  end
  local counted = #indexes > 0 and redis.call('HMGET', group.results_key, unpack(indexes)) or {}
  local lost = {}
  for i, index in ipairs(indexes) do
    if not counted[i] and not seen[index] and tonumber(index) < group.total then
      seen[index] = true
      values[#values + 1], values[#values + 2] = index, group.values[2 * i]
      lost[#lost + 1] = '-' .. index
    end
  end
  group.values, group.found = values, {}
  if group.lost > 0 and #lost > 0 then
    for i, state in ipairs(redis.call('HMGET', group.key, unpack(lost))) do
      if state then
        group.found[#group.found + 1] = lost[i]
      end
    end
  end
end

-- Which members of groups elsewhere succeed here, by groups. A submit of members has left a key for
-- each group, if it is not long ago.
local function ran_there(members)
  local indexes, gids, all_ran = {}, {}, {}
  for _, one in ipairs(members.there) do
    if not indexes[one.gid] then
      indexes[one.gid], gids[#gids + 1] = {}, one.gid
    end
    table.insert(indexes[one.gid], tonumber(one.index))
  end
  for _, gid in ipairs(gids) do
    local ran = read_ran(members.base, gid, indexes[gid])
    if ran.born then
      for _, index in ipairs(indexes[gid]) do
        add_ran(ran, index)
      end
      all_ran[#all_ran + 1] = ran
    end
  end
  return all_ran
end

-- Finds what the members mean for their groups. In most calls the group does not end and nothing
-- has failed; then Redis itself counts what is new.
local function count_members(members, is_held)
  members.ended, members.ran = {}, ran_there(members)
  for _, group in ipairs(members.here) do
    group.size = redis.call('HLEN', group.results_key)
    if group.state then
      group.runs = {}
    elseif group.lost + group.failed + group.cancelled > 0 or is_held or group.has_foreign
      or group.is_sealed and group.done + group.count >= group.total then
      group.values = values_of(group, is_held)
      keep_new(group)
      group.ends = group.is_sealed and group.done + #group.values / 2 == group.total
      if group.ends then
        members.ended[#members.ended + 1] = group
      end
    end
  end
  if #members.ended > 0 then
    redis.call('ZCARD', members.base .. 'groups')
  end
end

-- Adds the results of a run to those of its group. Returns how many are new. In the usual case all
-- results are the same. Then arguments that are written out cost Redis less than a table of them.
local function write_run(key, run)
  local ARGV, at, shared, left = ARGV, run.at, run.shared, run.last - run.first + 1
  if not shared then
    return redis.call('HSET', key, unpack(ARGV, at, at + 2 * left - 1))
  end
  local fresh = 0
  while left >= 8 do
    fresh = fresh + redis.call('HSET', key, ARGV[at], shared, ARGV[at + 1], shared, ARGV[at + 2],
      shared, ARGV[at + 3], shared, ARGV[at + 4], shared, ARGV[at + 5], shared, ARGV[at + 6],
      shared, ARGV[at + 7], shared)
    at, left = at + 8, left - 8
  end
  while left > 0 do
    fresh = fresh + redis.call('HSET', key, ARGV[at], shared)
    at, left = at + 1, left - 1
  end
  return fresh
end

local function write_results(group)
  if group.values then
    return #group.values > 0 and redis.call('HSET', group.results_key, unpack(group.values)) or 0
  end
  local fresh = 0
  for _, run in ipairs(group.runs) do
    fresh = fresh + write_run(group.results_key, run)
  end
  return fresh
end

local function write_members(members, now)
  for _, ran in ipairs(members.ran) do
    write_ran(ran)
  end
  for _, group in ipairs(members.here) do
    local is_first = group.size == 0 and #(group.values or group.runs) > 0
    if is_first then
      redis.call('HSET', group.results_key, LONG, '')
    end
    local fresh = write_results(group)
    if is_first then
      redis.call('HDEL', group.results_key, LONG)
    end
    if fresh > 0 then
      redis.call('HINCRBY', group.key, 'done', fresh)
    end
    if group.found and #group.found > 0 then
      redis.call('HINCRBY', group.key, 'lost', -#group.found)
      redis.call('HDEL', group.key, unpack(group.found))
    end
    if group.ends then
      write_group_end(members.base, group, 'success', now)
    end
  end
end
