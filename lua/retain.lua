-- retain: sets what a queue keeps of the tasks that succeed or die, or removes all of it
--
-- What is stored stays until it is too old or there are too many bytes, also if the tasks to keep
-- are none from now on. The days and bytes that are set then stay, and nothing is set if none are.
--
-- KEYS   the naming block
-- ARGV   1 days, '' to remove all, '-' to keep no more tasks · 2 bytes · 3 tasks, as in `meta`
-- REPLY  OK, what was set before, '' for nothing

local meta, histories, history_bytes = KEYS[1], KEYS[2], KEYS[3]
local days, budget, tasks = ARGV[1], ARGV[2], ARGV[3]
local LISTS_MAX = '2000'

-- Checks.
local before = redis.call('HGET', meta, 'history')
local wanted = days ~= '' and days .. ' ' .. budget .. ' ' .. tasks
if days == '-' then
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
return { 'OK', before or '' }
