-- gather_led: reported tasks that have not collected the others of the run that they lead.

-- Returns those that leave their key, nil if none does. `counts` are their tries before the report.
local function leaders_of(meta, tasks, ids, counts)
  local leaves = leaves_of(meta)
  for i, record in ipairs(leaves.is_any and redis.call('HMGET', tasks, unpack(ids)) or {}) do
    drop_from_gather(leaves, {}, header_with_gather(record) or {}, ids[i], counts[i])
  end
  read_leaves(leaves)
  return #leaves > 0 and leaves or nil
end
