-- retain: sets what a queue keeps of the tasks that succeed or die, or removes all of it
--
-- What is stored stays until it is too old or there are too many bytes, also if the tasks to keep
-- are none from now on. The days and bytes that are set then stay, and nothing is set if none are.
--
-- Days with a + are what the code of tasks declares. They add to what is set and never reduce it: a
-- queue that keeps all tasks goes on to do so, and one that was told to keep no more stays so, also
-- once nothing is left of what it kept.
--
-- KEYS   the naming block
-- ARGV   1 days, '' to remove all, '-' to keep no more tasks, '+<days>' to keep at least these ·
--        2 bytes · 3 tasks, as in `meta`
-- REPLY  OK, what was set before, '' for nothing, what is set now

local meta, histories, history_bytes = KEYS[1], KEYS[2], KEYS[3]
local days, budget, tasks = ARGV[1], ARGV[2], ARGV[3]
local LISTS_MAX, NAMES_MAX = '2000', 64

-- Returns the names of both lists, each once, or all tasks if they are too many.
local function united(kept, declared)
  if kept == '*' then
    return '*'
  end
  local _, count = string.gsub(kept, ',', '')
  local names = { kept }
  for name in string.gmatch(declared, '[^,]+') do
    if not string.find(kept, ',' .. name .. ',', 1, true) then
      names[#names + 1], count = name .. ',', count + 1
    end
  end
  -- One more comma than names.
  return count <= NAMES_MAX + 1 and table.concat(names) or '*'
end

-- Returns what keeps all that was set before, and what is declared.
local function at_least(before, least)
  local kept_days, kept_bytes, kept = string.match(before or '', '^(%d+) (%d+) (%S+)$')
  if not kept_days then
    return least .. ' ' .. budget .. ' ' .. united(',', tasks)
  elseif kept == '-' then
    return before
  end
  local longest = math.max(tonumber(kept_days), tonumber(least))
  local largest = math.max(tonumber(kept_bytes), tonumber(budget))
  return whole(longest) .. ' ' .. whole(largest) .. ' ' .. united(kept, tasks)
end

-- Checks.
local before = redis.call('HGET', meta, 'history')
local wanted = days ~= '' and days .. ' ' .. budget .. ' ' .. tasks
if string.sub(days, 1, 1) == '+' then
  wanted = at_least(before, string.sub(days, 2))
elseif days == '-' then
  local kept = string.match(before or '', '^%d+ %d+ ')
  wanted = kept and kept .. '-'
end
local lists, base = redis.call('ZRANGE', histories, '0', LISTS_MAX), string.sub(meta, 1, -5)
redis.call('HLEN', history_bytes)
for _, name in ipairs(lists) do
  redis.call('LLEN', base .. name)
end

-- Writes.
redis.call('HDEL', meta, days == '' and 'history' or '')
if wanted then
  redis.call('HSET', meta, 'history', wanted)
elseif days == '' then
  for _, name in ipairs(lists) do
    redis.call('UNLINK', base .. name)
  end
  redis.call('UNLINK', histories, history_bytes)
end
return { 'OK', before or '', wanted or (days ~= '' and before) or '' }
