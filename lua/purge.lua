-- purge: Dead | Cancelled → ∅, past their age or above the limits, up to 128; also idle
-- ledgers, groups that have ended or lack members, logs of tasks that are gone, and what is too
-- old in the history
--
-- The script removes the oldest tasks of each state first: those past their age, those above the
-- number of tasks, and those above the bytes. It counts each task under the first reason that
-- applies. Tasks that have just ended stay above the number, so that an operator can bring back all
-- of them; the bytes bound them. It keeps a dead task that blocks its lane, because that lane waits
-- for an operator. `purge_from` in `meta` shows where the next call begins, so that many such tasks
-- do not keep the script from those behind them, and `logs_from` does the same for logs. After a
-- call that removes nothing there is no more to do at once.
--
-- The script records the latest birth of the tasks that it removes: `await` concludes that a later
-- task without a record has succeeded, unless the task is among the deleted. Deleted ids are kept
-- for a day, up to 10,000 of them; after that, the latest birth covers them, too. So only `retire`
-- may remove `meta`, and only if there is no ledger.
--
-- KEYS   the naming block
-- ARGV   1 now override · 2 tasks to keep of each state · 3 bytes to keep of each · 4 age ms · 5
--        ledger idle ms · 6 ms for which the number removes no task that ended
-- REPLY  OK, how many tasks were purged, '1' if more is due, how many workers the queue has, how
--        many of the tasks were above the number to keep, how many above the bytes
-- REFUSE NEWER with the required number

local meta, tasks, dead, cancelled, tries = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local errors, blobs, priorities = KEYS[6], KEYS[7], KEYS[8]
local ledgers, workers, deleted, groups = KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local logs, logged = KEYS[13], KEYS[14]
local now, keep, keep_bytes = now_ms(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local age_ms, idle_ms, recent_ms = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local sides = { tries, errors, blobs, priorities }
local PURGE_MAX, GROUPS_MAX = 64, 16
local DELETED_MAX, DELETED_FOR_MS = 10000, 86400000
-- An open group is looked at again after this time, or a longer one.
local OPEN_MS_MIN = 60000

-- Checks.
local flags = redis.call('HMGET', meta, 'needs', 'purge_from', 'history', 'logs_from')
local needs, purge_from = tonumber(flags[1] or 1), tonumber(flags[2] or 0)
local logs_from = tonumber(flags[4] or 0)
if needs > NEEDS_KNOWN then
  return { 'NEWER', whole(needs) }
end
local ids, above, heavy = {}, 0, 0
local function blocks_lane(id, record)
  local header = header_with_lane(record)
  return header and header.nb
    and redis.call('ZSCORE', key_of(meta, 'lane', header.n), id) == '-1'
end
-- Returns the tasks of a state that are removed, of those from this rank on; the bytes that are
-- left in the state; the rank from which the next call reads; and whether there is more to remove.
local function victims_of(zset, state, from)
  local left, bytes, victims = redis.call('ZCARD', zset), counted_bytes(meta, state), {}
  local oldest = redis.call('ZRANGE', zset, whole(from), whole(from + PURGE_MAX - 1), 'WITHSCORES')
  local goes_on, kept = #oldest == 2 * PURGE_MAX, 0
  for i = 1, #oldest, 2 do
    local id, ended = oldest[i], tonumber(oldest[i + 1])
    local is_old = ended <= now - age_ms
    local is_recent = ended <= now and ended > now - recent_ms
    local is_above, is_heavy = left > keep and not is_recent, bytes > keep_bytes
    if not (is_old or is_above or is_heavy) then
      goes_on = false
      break
    end
    if state == 'dead' and needs >= NEEDS_OF_LANES
      and blocks_lane(id, redis.call('HGET', tasks, id)) then
      kept = kept + 1
    else
      if is_above and not is_old then
        above = above + 1
      elseif is_heavy and not is_old then
        heavy = heavy + 1
      end
      left = left - 1
      bytes = bytes_without(bytes, kept_bytes(meta, id), left)
      victims[#victims + 1] = id
      ids[#ids + 1] = id
    end
  end
  return victims, bytes, goes_on and from + kept or 0, goes_on and #victims > 0
end
local from_dead, dead_bytes, purge_next, more_dead = victims_of(dead, 'dead', purge_from)
local from_cancelled, cancelled_bytes, _, more_cancelled = victims_of(cancelled, 'cancelled', 0)
local moves = moves_of(meta)
local flow = flow_of_ends(meta, needs)
if flow then
  sides[#sides + 1] = flow.base .. 'unmet_ended'
end
local freed = freed_by(meta, tasks, sides, ids, moves, flow)
pass_permits(moves)
local excess = redis.call('ZCARD', deleted) - DELETED_MAX
local untold = redis.call('ZRANGEBYSCORE', deleted, '-inf',
  excess > 0 and '+inf' or whole(now - DELETED_FOR_MS), 'LIMIT', 0, PURGE_MAX)
local born = tonumber(redis.call('HGET', meta, 'purged_born') or 0)
for _, gone in ipairs({ ids, untold }) do
  for _, id in ipairs(gone) do
    born = math.max(born, born_ms(id))
  end
end
local idle = redis.call('ZRANGEBYSCORE', ledgers, '-inf', whole(now - idle_ms), 'LIMIT', 0,
  PURGE_MAX)
for _, client in ipairs(idle) do
  redis.call('EXISTS', key_of(meta, 'ledger', client))
end
local live = redis.call('ZCARD', workers)
-- A group that is sealed is kept while its members have not ended. If one of them is not stored, it
-- is kept once more, as long as a dead task: the same calls may be submitted again. Those who still
-- wait for another one learn that it does not come back.
local due = redis.call('ZRANGEBYSCORE', groups, '-inf', whole(now), 'LIMIT', 0, GROUPS_MAX)
local old, open = {}, {}
for _, gid in ipairs(due) do
  local group = group_of(string.sub(meta, 1, -5), gid)
  local is_open = group and group.is_sealed and not group.state
  local lacks = is_open and lacks_members(group, tasks, flow and flow.own)
  if is_open and (not lacks or redis.call('HEXISTS', group.key, 'kept') == 0) then
    open[#open + 1] = { gid = gid, key = group.key, lacks = lacks }
  else
    old[#old + 1] = gid
    redis.call('HLEN', key_of(meta, 'results', gid))
    if flow and redis.call('HEXISTS', flow.ties_key, gid) == 1 then
      post(flow, flow.own, 'end ' .. VOID .. ' 0 ' .. gid)
    end
  end
end
local unlogged, logs_next, logs_all = old_logs(tasks, logs, logged, now, logs_from)
local more_logs = logs_next > 0 and #unlogged > 0
for _, id in ipairs(ids) do
  unlogged[#unlogged + 1] = id
end
local history = history_of(string.sub(meta, 1, -5), flags[3], now)
if history then
  trim_history(history)
end

-- Writes.
redis.call('ZREM', dead, '', unpack(from_dead))
redis.call('ZREM', cancelled, '', unpack(from_cancelled))
redis.call('ZREM', deleted, '', unpack(untold))
if #ids > 0 then
  write_drop(meta, tasks, sides, ids, freed)
  redis.call('HSET', meta, 'dead_bytes', whole(dead_bytes), 'cancelled_bytes',
    whole(cancelled_bytes))
  write_moves(moves, now)
end
if flow and #ids + #old > 0 then
  flow.write(now)
end
-- A key that is empty must not be touched again.
if logs_all > 0 then
  keep_logs(logs, logged)
end
drop_logs(logs, logged, unlogged)
if logs_next ~= logs_from then
  redis.call('HSET', meta, 'logs_from', whole(logs_next))
end
for _, gid in ipairs(old) do
  redis.call('UNLINK', key_of(meta, 'group', gid), key_of(meta, 'results', gid))
end
if #old > 0 then
  redis.call('ZREM', groups, unpack(old))
end
for _, group in ipairs(open) do
  if group.lacks then
    redis.call('HSET', group.key, 'kept', '1')
  end
  redis.call('ZADD', groups, whole(now + math.max(age_ms, OPEN_MS_MIN)), group.gid)
end
if #ids + #untold > 0 then
  redis.call('HSET', meta, 'purged_born', whole(born))
end
if purge_next ~= purge_from then
  redis.call('HSET', meta, 'purge_from', whole(purge_next))
end
if history then
  write_history(history)
end
for _, client in ipairs(idle) do
  redis.call('UNLINK', key_of(meta, 'ledger', client))
  redis.call('ZREM', ledgers, client)
end
local more = more_dead or more_cancelled or #idle == PURGE_MAX or #untold == PURGE_MAX
  or #due == GROUPS_MAX or more_logs
return { 'OK', whole(#ids), more and '1' or '0', whole(live), whole(above), whole(heavy) }
