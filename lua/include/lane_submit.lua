-- lane_submit: the lanes of a submit. They are the options from `at` to before `past`.

-- The largest width that the call states.
local function widest_of(at, past)
  local widest = 0
  while at < past do
    local first, last, width = string.match(ARGV[at], '^@(%d+):(%d+);(%d+)$')
    widest, at = math.max(widest, width), at + last - first + 2
  end
  return widest
end

-- The accepted tasks of lanes join them, unless they are due later, in the order of the call. Those
-- without a permit are `apart` from the ready list. Returns the largest width of an accepted task.
local function join_wide_lanes(joins, apart, first_task, at, past)
  local widest = 0
  while at < past do
    local first, last, width = string.match(ARGV[at], '^@(%d+):(%d+);(%d+)$')
    width = tonumber(width)
    for position = tonumber(first), tonumber(last) do
      at = at + 1
      local reason = apart[position]
      if reason ~= 'taken' and width > widest then
        widest = width
      end
      if (reason == nil or reason == 'ranked')
        and not join_lane(joins, ARGV[at], width, ARGV[first_task + 2 * position - 2], false) then
        apart[position] = 'blocked'
      end
    end
    at = at + 1
  end
  return widest
end

-- Another task of a lane that has `size` tasks waits. `others` has a list of what to add for each
-- such lane: its key, then scores and tasks.
local function add_other(joins, others, name, id, size)
  local words = others[name]
  if not words then
    words = { joins.lane_base .. name, nth = size == 1 and 0 or 1 }
    others[name], others[#others + 1] = words, words
  end
  local last = #words
  words.nth = words.nth + 1
  words[last + 1], words[last + 2] = place_of(joins, words.nth), id
end

-- The same if all lanes of the queue and of the call have one permit, which the first task of the
-- lane has. So this reads only the size of each lane. `joins.firsts` has the key, the score and the
-- first task of each, `joins.others` a list of the key, scores and other tasks of some.
local function join_narrow_lanes(joins, apart, first_task, at, past)
  local call, ARGV, lane_base, place = redis.call, ARGV, joins.lane_base, nil
  local sizes, firsts, n, others, waits, widest = {}, {}, 0, {}, 0, 0
  while at < past do
    local first, last = string.match(ARGV[at], '^@(%d+):(%d+)')
    for position = tonumber(first), tonumber(last) do
      at = at + 1
      local reason = apart[position]
      if reason ~= 'taken' then
        widest = 1
      end
      if reason == nil or reason == 'ranked' then
        local name, id, score = ARGV[at], ARGV[first_task + 2 * position - 2], '-1'
        local size = sizes[name]
        if size then
          add_other(joins, others, name, id, size)
        else
          local key = lane_base .. name
          size = call('ZCARD', key)
          if size > 0 then
            place = place or place_of(joins, 1)
            score = place
          end
          firsts[n + 1], firsts[n + 2], n = key, score, n + 3
          firsts[n] = id
        end
        if size > 0 then
          apart[position], waits = 'blocked', waits + 1
          if size == 1 then
            joins.backlogs[#joins.backlogs + 1] = name
          end
        end
        sizes[name] = size + 1
      end
    end
    at = at + 1
  end
  joins.firsts, joins.others, joins.waits = firsts, others, waits
  return widest
end

local function join_lanes(tasks, apart, first_task, at, past)
  local joins = joins_of(string.sub(tasks, 1, -6) .. 'meta')
  local join = joins.widest == 1 and widest_of(at, past) == 1 and join_narrow_lanes
    or join_wide_lanes
  local widest = join(joins, apart, first_task, at, past)
  read_joins(joins)
  joins.is_first = widest > 0 and joins.needs < NEEDS_OF_LANES
  joins.is_wider = widest > joins.widest and whole(widest)
  return joins
end

local function write_lanes(joins, now)
  local call, firsts, others = redis.call, joins.firsts or {}, joins.others or {}
  for i = 1, #firsts, 3 do
    call('ZADD', firsts[i], firsts[i + 1], firsts[i + 2])
  end
  for _, words in ipairs(others) do
    call('ZADD', unpack(words))
  end
  write_joins(joins, now)
  if joins.is_first then
    redis.call('HSET', joins.base .. 'meta', 'needs', NEEDS_OF_LANES)
  end
  if joins.is_wider then
    redis.call('HSET', joins.base .. 'meta', 'widest', joins.is_wider)
  end
end
