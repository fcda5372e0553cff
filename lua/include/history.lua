-- history: what a queue keeps of the ends of its tasks, by day. `history` in `meta` says for how
-- many days, in how many bytes, and of which tasks: `*` for all, `-` for none any more, else their
-- names between commas. The successes of a day are in `success:<day>`, its deaths in `dead:<day>`;
-- an entry has one line for each task. `histories` has these lists by their days, and
-- `history_bytes` the bytes of each and how many of its first entries were removed, and the bytes
-- of `all`.

local HISTORY_DAY_MS, OLD_LISTS_MAX = 86400000, 8
-- A call reads old entries so many times, and so many at once: more bytes than a call can add. An
-- entry of deaths usually has one line, one of successes 130.
local OLD_READS_MAX, OLD_DEATHS, OLD_SUCCESSES = 32, 32, 1

-- Returns what is kept by that text of `meta`, nil if nothing is.
local function history_of(base, text, now)
  local days, budget, kept = string.match(text or '', '^(%d+) (%d+) (%S+)$')
  if not days then
    return nil
  end
  local today = math.floor(now / HISTORY_DAY_MS)
  return { base = base, index = base .. 'histories', sizes = base .. 'history_bytes',
    today = today, first = today - tonumber(days) + 1, budget = tonumber(budget), kept = kept,
    lists = {}, named = {}, gone = {} }
end

local function is_in_history(history, task)
  return history.kept == '*' or string.find(history.kept, ',' .. task .. ',', 1, true) ~= nil
end

local function history_list(history, name)
  local list = history.named[name]
  if not list then
    local stored = redis.call('HGET', history.sizes, name)
    local bytes, removed = string.match(stored or '', '^(%d+) (%d+)$')
    list = { name = name, key = history.base .. name, lines = {}, cut = 0,
      length = redis.call('LLEN', history.base .. name),
      bytes = tonumber(bytes or 0), removed = tonumber(removed or 0) }
    history.named[name] = list
  end
  return list
end

-- Adds a line of the kind `success` or `dead` to the day of that ms, unless it is too old. A worker
-- whose clock is ahead ends no task tomorrow.
local function add_to_history(history, kind, ended_at, line)
  local day = math.min(math.floor(ended_at / HISTORY_DAY_MS), history.today)
  if day >= history.first then
    local list = history_list(history, kind .. ':' .. whole(day))
    if #list.lines == 0 then
      list.day = day
      history.lists[#history.lists + 1] = list
    end
    list.lines[#list.lines + 1] = line
  end
end

-- Decides what leaves: lists that are too old, and the first entries of the oldest list if there
-- are too many bytes. A call removes some of them, the next ones the rest. Reads all keys that
-- `write_history` writes.
local function trim_history(history)
  local total = tonumber(redis.call('HGET', history.sizes, 'all') or 0)
  history.left = redis.call('ZCARD', history.index)
  for _, list in ipairs(history.lists) do
    list.entry = table.concat(list.lines, '\n')
    list.bytes, total = list.bytes + #list.entry, total + #list.entry
    history.left = history.left + (list.length == 0 and 1 or 0)
  end
  local oldest = redis.call('ZRANGE', history.index, '0', whole(OLD_LISTS_MAX - 1), 'WITHSCORES')
  local reads = OLD_READS_MAX
  for i = 1, #oldest, 2 do
    local list = history_list(history, oldest[i])
    if tonumber(oldest[i + 1]) < history.first then
      list.cut, total = list.length, total - list.bytes
    end
    local many = string.sub(list.name, 1, 1) == 'd' and OLD_DEATHS or OLD_SUCCESSES
    while total > history.budget and list.cut < list.length and reads > 0 do
      local from, to = whole(list.cut), whole(list.cut + many - 1)
      reads = reads - 1
      for _, entry in ipairs(redis.call('LRANGE', list.key, from, to)) do
        if total > history.budget then
          list.cut, total, list.bytes = list.cut + 1, total - #entry, list.bytes - #entry
        end
      end
    end
    if list.cut == list.length and not list.entry then
      history.gone[#history.gone + 1], history.left = list.name, history.left - 1
    elseif list.cut > 0 and not list.entry then
      history.lists[#history.lists + 1] = list
    end
    if total <= history.budget and tonumber(oldest[i + 1]) >= history.first then
      break
    end
  end
  history.total = total
end

-- The lists of one kind have their own place among those of a day: successes leave first.
local function history_score(list)
  return string.sub(list.name, 1, 1) == 'd' and whole(list.day) .. '.5' or whole(list.day)
end

local function write_history(history)
  for _, list in ipairs(history.lists) do
    if list.entry then
      redis.call('RPUSH', list.key, list.entry)
      redis.call('ZADD', history.index, history_score(list), list.name)
    end
    if list.cut > 0 then
      redis.call('LTRIM', list.key, whole(list.cut), '-1')
    end
    redis.call('HSET', history.sizes, list.name,
      whole(list.bytes) .. ' ' .. whole(list.removed + list.cut))
  end
  if #history.lists + #history.gone > 0 and history.left > 0 then
    redis.call('HSET', history.sizes, 'all', whole(history.total))
  end
  for _, name in ipairs(history.gone) do
    redis.call('UNLINK', history.base .. name)
  end
  if #history.gone > 0 and history.left == 0 then
    redis.call('UNLINK', history.index, history.sizes)
  elseif #history.gone > 0 then
    redis.call('ZREM', history.index, unpack(history.gone))
    redis.call('HDEL', history.sizes, unpack(history.gone))
  end
end
