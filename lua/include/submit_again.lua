-- submit_again: tasks of flows that have ended before they are submitted again. They have no record
-- any more, so other keys show it: the outcome of a step, and for a member what its group knows. A
-- client can't look before its submit, because a task may end between the two.

-- The byte of `=`.
local AGAIN_MARK = 61

-- The steps and the members that the options name, and the position of the first other option. The
-- members are by groups.
local function read_again(options)
  local steps, groups, by_gid, first = {}, {}, {}, 1
  while string.byte(options[first] or '') == AGAIN_MARK do
    local from, to, index, born, home, gid =
      string.match(options[first], '^=(%d+):(%d+);?(%d*);?(%d*);?([^;]*);?(.*)$')
    local group = by_gid[gid]
    if gid ~= '' and not group then
      group = { gid = gid, home = home, born = born, positions = {}, indexes = {} }
      by_gid[gid], groups[#groups + 1] = group, group
    end
    for position = tonumber(from), tonumber(to) do
      if gid == '' then
        steps[#steps + 1] = position
      else
        group.positions[#group.positions + 1] = position
        group.indexes[#group.indexes + 1] = index + position - from
      end
    end
    first = first + 1
  end
  return steps, groups, first
end

local function leave_out_if_new(found, position, id)
  if found.apart[position] ~= 'taken' then
    found.apart[position] = 'taken'
    found.answers[position] = id
    found.taken[#found.taken + 1] = position .. '=' .. id
  end
end

-- Omits steps whose success is remembered.
local function leave_out_steps(base, found, steps, ids)
  local keys = {}
  for i, position in ipairs(steps) do
    keys[i] = base .. 'outcome:' .. ids[position]
  end
  local outcomes = #keys > 0 and redis.call('MGET', unpack(keys)) or {}
  for i, position in ipairs(steps) do
    if outcomes[i] then
      leave_out_if_new(found, position, ids[position])
    end
  end
end

-- Omits members of a group of this queue that have counted, and all if the group has ended. Only if
-- an addition to the group was repeated, another client may have submitted them.
local function leave_out_counted(base, found, group, ids)
  local state, is_again = unpack(redis.call('HMGET', base .. 'group:' .. group.gid, 'state',
    'again'))
  for i, position in ipairs(state and group.positions or is_again and group.positions or {}) do
    local index = string.format('%d', group.indexes[i])
    if state or redis.call('HEXISTS', base .. 'results:' .. group.gid, index) == 1 then
      leave_out_if_new(found, position, ids[position])
    end
  end
end

-- Omits members of a group of another queue that have succeeded here.
local function leave_out_ran(base, found, group, ids)
  local ran = read_ran(base, group.gid, group.indexes, group.born)
  for i, position in ipairs(group.positions) do
    if has_ran(ran, group.indexes[i]) then
      leave_out_if_new(found, position, ids[position])
    end
  end
  return ran
end

-- Returns the position after these options, and a function that writes.
local function leave_out_ended(base, found, options, ids)
  local steps, groups, first = read_again(options)
  local all_ran = {}
  leave_out_steps(base, found, steps, ids)
  for _, group in ipairs(groups) do
    if group.home == '' then
      leave_out_counted(base, found, group, ids)
    else
      all_ran[#all_ran + 1] = leave_out_ran(base, found, group, ids)
    end
  end
  return first, function()
    for _, ran in ipairs(all_ran) do
      write_ran(ran)
    end
  end
end
