-- task_drop: removes tasks without a success, with all their data.

-- Reads every key that `write_drop` writes. Returns the keys of the biz ids that become free. The
-- tasks leave their lanes with `moves`, the gates at which they wait with `drops`, and those with
-- which they run with `leaves`; nil if none of them can wait. With `flow`, dependants learn of it,
-- and the tasks stop waiting.
local function freed_by(meta, tasks, sides, ids, moves, flow, drops, leaves)
  local freed = {}
  local records = #ids > 0 and redis.call('HMGET', tasks, unpack(ids)) or {}
  for i, id in ipairs(ids) do
    local header = header_of(records[i])
    local biz = biz_key(meta, header)
    local has_biz = biz and owns_mark(redis.call('GET', biz), id)
    if flow then
      flow.tell_end(id, 'forgotten', not has_biz)
    end
    if flow and leave_unmet(flow, id, header, false) then
      moves.gone[id] = true
    end
    drop_from_lane(moves, header, id)
    if drops then
      drop_from_gates(drops, header, id)
      drop_from_gather(leaves, drops.gone, header, id)
    end
    if has_biz then
      freed[#freed + 1] = biz
    end
  end
  for _, side in ipairs(sides) do
    redis.call('HLEN', side)
  end
  return freed
end

local function write_drop(meta, tasks, sides, ids, freed)
  redis.call('HDEL', tasks, unpack(ids))
  for _, side in ipairs(sides) do
    redis.call('HDEL', side, unpack(ids))
  end
  if #freed > 0 then
    redis.call('UNLINK', unpack(freed))
  end
  redis.call('HINCRBY', meta, 'purged', #ids)
end
