-- tally_row: rows of statistics. A row has the number of its minute, hour or day since the epoch,
-- and then a line for each task:
-- `<task> <six counts, run µs, wait µs, with commas> <histogram of runs> <histogram of waits>`. A
-- histogram is `<first bucket>:<count>,<count>…`, or `-`. Bucket k ends at 2^(k/2) µs, in a coarse
-- row at 2^k µs.

-- A queue has this many tasks of its own in a row; all others count as `*`.
local ROW_TASKS_MAX, OTHER_TASKS = 64, '*'

-- Returns the row of a stored text; nil if there is none.
local function read_row(text)
  local number, row = string.match(text or '', '^(%d+)'), nil
  if number then
    row = { number = tonumber(number), names = {}, lines = {} }
    for line in string.gmatch(text, '\n([^\n]+)') do
      local name = string.match(line, '^%S+') or OTHER_TASKS
      row.names[#row.names + 1], row.lines[name] = name, line
    end
  end
  return row
end

local function row_text(row)
  local lines = { whole(row.number) }
  for i, name in ipairs(row.names) do
    lines[i + 1] = row.lines[name]
  end
  return table.concat(lines, '\n')
end

local function added_counts(first, other)
  local sums = {}
  for count in string.gmatch(first, '%d+') do
    sums[#sums + 1] = tonumber(count)
  end
  local i = 0
  for count in string.gmatch(other, '%d+') do
    i = i + 1
    sums[i] = (sums[i] or 0) + tonumber(count)
  end
  for at, sum in ipairs(sums) do
    sums[at] = whole(sum)
  end
  return table.concat(sums, ',')
end

-- Adds the text of a histogram to `buckets`. Two buckets become one if `halves` is 2.
local function add_buckets(buckets, text, halves)
  local first, counts = string.match(text, '^(%d%d?):(.*)$')
  local bucket = tonumber(first)
  for count in string.gmatch(counts or '', '%d+') do
    if count ~= '0' then
      local at = math.ceil(bucket / halves)
      buckets[at] = (buckets[at] or 0) + tonumber(count)
      buckets.first = math.min(buckets.first or at, at)
      buckets.last = math.max(buckets.last or at, at)
    end
    bucket = bucket + 1
  end
end

local function histogram_text(buckets)
  if not buckets.first then
    return '-'
  end
  local counts = {}
  for bucket = buckets.first, buckets.last do
    counts[#counts + 1] = whole(buckets[bucket] or 0)
  end
  return whole(buckets.first) .. ':' .. table.concat(counts, ',')
end

-- Adds a line to a row. `halves` is 2 if the row is coarse and the line is not.
local function add_line(row, line, halves)
  local name, counts, runs, waits = string.match(line, '^(%S+) (%S+) (%S+) (%S+)$')
  if not name then
    return
  end
  if not row.lines[name] and #row.names >= ROW_TASKS_MAX then
    name = OTHER_TASKS
  end
  local known = row.lines[name]
  if not known then
    row.names[#row.names + 1] = name
  end
  if known or halves == 2 then
    local _, old_counts, old_runs, old_waits =
      string.match(known or '', '^(%S+) (%S+) (%S+) (%S+)$')
    local run_buckets, wait_buckets = {}, {}
    add_buckets(run_buckets, old_runs or '-', 1)
    add_buckets(run_buckets, runs, halves)
    add_buckets(wait_buckets, old_waits or '-', 1)
    add_buckets(wait_buckets, waits, halves)
    counts = added_counts(old_counts or '', counts)
    runs, waits = histogram_text(run_buckets), histogram_text(wait_buckets)
  end
  row.lines[name] = name .. ' ' .. counts .. ' ' .. runs .. ' ' .. waits
end

-- Adds a finished row to the open row of the longer time in which it is. Returns the row that is
-- open now, and the one that is finished by that.
local function fold_row(open, finished, length, halves)
  local number, closed = math.floor(finished.number / length), nil
  if open and open.number ~= number then
    open, closed = nil, open
  end
  open = open or { number = number, names = {}, lines = {} }
  for _, name in ipairs(finished.names) do
    add_line(open, finished.lines[name], halves)
  end
  return open, closed
end
