-- group_complete: the members of groups among a call of completions.

-- The byte of `&`.
local MEMBER_MARK = 38

-- Adds the position in the group and the result of each task of a run, except of those that another
-- worker holds. `shared` is the result of all, nil if each has its own, which follows its position.
-- Notes whether the group has no member at one of these positions. Numbers with the same count of
-- digits sort as text, so this parses nothing.
local function add_values(group, first, last, at, shared, is_held)
  local ARGV, values, size, step = ARGV, group.values, #group.values, shared and 1 or 2
  local total, digits = group.total_text, #group.total_text
  for position = first, last do
    if not is_held or is_held[position] then
      local index = ARGV[at]
      values[size + 1], values[size + 2] = index, shared or ARGV[at + 1]
      size = size + 2
      if #index > digits or #index == digits and index >= total then
        group.has_foreign = true
      end
    end
    at = at + step
  end
end

-- Returns the members of groups, and the position after them. The members are the words from `at`.
-- `here` has the position and the result of each, by groups of this queue; `there` has an effect
-- for each member of a group elsewhere. Reads the keys that `write_members` writes.
local function read_members(base, first_id, at, past, is_held)
  local members = { base = base, here = {}, there = {} }
  local by_gid = {}
  while at < past and string.byte(ARGV[at]) == MEMBER_MARK do
    local first, last, home, sharing, gid =
      string.match(ARGV[at], '^&(%d+):(%d+);([^;]*);(=?)(.*)$')
    local shared = sharing ~= '' and ARGV[at + 1] or nil
    local group = by_gid[gid]
    first, last, at = tonumber(first), tonumber(last), at + (shared and 2 or 1)
    local step = shared and 1 or 2
    if home == '' and not group then
      group = group_of(base, gid)
      if group then
        members.here[#members.here + 1], by_gid[gid], group.values = group, group, {}
        group.total_text = whole(group.total)
      end
    end
    if home == '' and group then
      add_values(group, first, last, at, shared, is_held)
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
local function count_members(members)
  members.ended, members.ran = {}, ran_there(members)
  for _, group in ipairs(members.here) do
    group.size = redis.call('HLEN', group.results_key)
    if group.state then
      group.values = {}
    elseif group.lost + group.failed + group.cancelled > 0
      or group.is_sealed and group.done + #group.values / 2 >= group.total
      or group.has_foreign then
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

local function write_members(members, now)
  for _, ran in ipairs(members.ran) do
    write_ran(ran)
  end
  for _, group in ipairs(members.here) do
    if #group.values > 0 then
      if group.size == 0 then
        redis.call('HSET', group.results_key, LONG, '')
      end
      local fresh = redis.call('HSET', group.results_key, unpack(group.values))
      if group.size == 0 then
        redis.call('HDEL', group.results_key, LONG)
      end
      if fresh > 0 then
        redis.call('HINCRBY', group.key, 'done', fresh)
      end
      if group.found and #group.found > 0 then
        redis.call('HINCRBY', group.key, 'lost', -#group.found)
        redis.call('HDEL', group.key, unpack(group.found))
      end
    end
    if group.ends then
      write_group_end(members.base, group, 'success', now)
    end
  end
end
