-- retire: an unused queue → ∅, with all its keys
--
-- The queue has no task, no worker, no ledger, no group and no schedule, no task elsewhere waits
-- for one of it, it is not paused, no history of it is kept or was stopped, and no worker has used
-- it for a while. The script removes facts about the past only when no call can need them:
-- `purged_born` and `deleted` matter only while a ledger exists, and a later fence is higher than
-- the last one, which belongs to a ms in the past. Results, outcomes, completion lists and the
-- marks of successes expire by themselves.
--
-- KEYS   the naming block
-- ARGV   1 now override · 2 idle ms
-- REPLY  OK, '1' if nothing of the queue is left, else '0'
-- REFUSE NEWER with the required number

local meta, tasks, ready, priority, priorities = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local delayed, retry, dead, cancelled = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local success, tries, errors, skips, cancel = KEYS[10], KEYS[11], KEYS[12], KEYS[13], KEYS[14]
local waiters, blobs, ledgers, workers, wake = KEYS[15], KEYS[16], KEYS[17], KEYS[18], KEYS[19]
local deleted, lanes, unmet, unmet_ended, ties = KEYS[20], KEYS[21], KEYS[22], KEYS[23], KEYS[24]
local outboxes, applied, asks, giveups = KEYS[25], KEYS[26], KEYS[27], KEYS[28]
local limits, paused, shut, spent, loans = KEYS[29], KEYS[30], KEYS[31], KEYS[32], KEYS[33]
local groups, widths, asked, gathers = KEYS[34], KEYS[35], KEYS[36], KEYS[37]
local schedules, code_schedules = KEYS[38], KEYS[39]
local tally, minutes, hours, days = KEYS[40], KEYS[41], KEYS[42], KEYS[43]
local logs, logged = KEYS[44], KEYS[45]
local now, idle_ms = now_ms(ARGV[1]), tonumber(ARGV[2])
local FENCES_A_MS = 1024

-- Checks.
local facts = redis.call('HMGET', meta, 'needs', 'paused', 'fence', 'watched_at', 'history')
local needs, paused_at, fence, watched_at = facts[1], facts[2], facts[3], facts[4]
local has_history = facts[5]
if needs and tonumber(needs) > NEEDS_KNOWN then
  return { 'NEWER', needs }
end
local left = {}
local function count(command, keys)
  local sum = 0
  for _, key in ipairs(keys) do
    local size = redis.call(command, key)
    if size > 0 then
      left[#left + 1] = key
    end
    sum = sum + size
  end
  return sum
end
local used = count('HLEN', { tasks }) + count('ZCARD', { ledgers, workers, groups })
  + count('ZCARD', { schedules, code_schedules })
  + count('HLEN', { ties }) + count('ZCARD', { outboxes })
count('HLEN', { meta, priorities, tries, errors, skips, cancel, waiters, blobs })
count('HLEN', { unmet, unmet_ended, applied, tally, logs })
-- What an operator has set stays.
used = used + count('HLEN', { limits, paused, widths }) + count('ZCARD', { loans })
count('LLEN', { ready, success, wake, minutes, hours, days })
count('ZCARD', { priority, delayed, retry, dead, cancelled, deleted, lanes, asks, giveups, shut })
count('ZCARD', { spent, asked, gathers, logged })
local latest = redis.call('LRANGE', success, -1, -1)[1]
local ended_at = latest and string.match(latest, '^%S+ (%d+)')
local used_at = math.max(tonumber(fence or 0) / FENCES_A_MS, tonumber(watched_at or 0),
  tonumber(ended_at or 0))
if paused_at or has_history or used > 0 or used_at >= now - idle_ms then
  return { 'OK', '0' }
end

-- Writes.
if #left > 0 then
  redis.call('UNLINK', unpack(left))
end
return { 'OK', '1' }
