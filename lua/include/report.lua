-- report: the common parts of `complete`, `fail` and `release`.
--
-- ARGV   1 now override · 2 runs, after `=` if an id may be there twice; then for each run of
--        reports under one token: the token, how many; then the ids; then further columns with one
--        value for each id. If all ids differ and have one token, it can be the second argument,
--        unless more follows the columns

local FIRST_RUN = 3

-- Returns the positions of the reports whose token matches the token of their task, nil if all do;
-- a reply that names the other reports, where the ids begin in ARGV, and how many there are. A task
-- that appears twice in a call is ended once.
local function still_held(working, columns)
  local ARGV = ARGV
  local runs, token, left = tonumber(ARGV[2]), ARGV[2], nil
  local run, first_id, count = FIRST_RUN, FIRST_RUN, 0
  local repeating = not runs and string.match(token, '^=(%d+)$')
  runs = runs or tonumber(repeating or nil)
  if not runs then
    first_id, count = FIRST_RUN, (#ARGV - 2) / (columns + 1)
    left = count
  else
    first_id, count = FIRST_RUN + 2 * runs, 0
    for i = FIRST_RUN + 1, first_id - 1, 2 do
      count = count + tonumber(ARGV[i])
    end
    token, left = ARGV[run], tonumber(ARGV[run + 1])
  end
  if count == 1 then
    -- A single report, for example from a worker with one slot, needs no lists.
    if redis.call('HGET', working, ARGV[first_id]) == token then
      return nil, 'OK', first_id, 1
    end
    return {}, { 'OK', 1 }, first_id, 1
  end
  local tokens = redis.call('HMGET', working, unpack(ARGV, first_id, first_id + count - 1))
  local same = 0
  while same < left and tokens[same + 1] == token do
    same = same + 1
  end
  if same == count and not repeating then
    -- The usual case needs no lists.
    return nil, 'OK', first_id, count
  end
  local held, reply, seen, still = {}, 'OK', {}, 0
  for i = 1, count do
    while left == 0 do
      run = run + 2
      token, left = ARGV[run], tonumber(ARGV[run + 1])
    end
    left = left - 1
    local id = ARGV[first_id + i - 1]
    if tokens[i] == token and not seen[id] then
      seen[id] = true
      still = still + 1
      held[still] = i
    else
      reply = reply == 'OK' and { 'OK' } or reply
      reply[#reply + 1] = i
    end
  end
  return held, reply, first_id, count
end

-- Returns the values of those reports in the column that begins at `first`.
local function column(first, count, held)
  if not held then
    return { unpack(ARGV, first, first + count - 1) }
  end
  local values = {}
  for i, position in ipairs(held) do
    values[i] = ARGV[first + position - 1]
  end
  return values
end
