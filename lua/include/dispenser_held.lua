-- dispenser_held: the items that the caller of a script holds.

-- Reads the caller's bucket: the items in order, and what `holders` says of each. Items whose time
-- is over go back, also those beyond the bounds of `lost_items`.
local function held_items(back, bucket, assignee, now)
  local items = redis.call('ZRANGE', bucket, '0', '-1')
  if not items[1] then
    redis.call('HLEN', back.keys.holders)
    return items, {}
  end
  local texts = redis.call('HMGET', back.keys.holders, unpack(items))
  moved_texts(back, items, texts, assignee)
  if not (back.more or back.items[1]) then
    return items, texts
  end
  local left, left_texts = {}, {}
  for i = 1, #items do
    local item = items[i]
    if not back.rank[item] then
      if holder_of(texts[i] or '0:') <= now then
        add_back(back, item, redis.call('ZSCORE', bucket, item), assignee)
        back.noted[item], back.barred[item] = assignee, true
      else
        left[#left + 1], left_texts[#left + 1] = item, texts[i]
      end
    end
  end
  return left, left_texts
end

-- Adds items and what `holders` says of them to a reply.
local function add_held(reply, items, texts)
  local at = #reply
  for i = 1, #items do
    reply[at + 1], reply[at + 2] = items[i], texts[i]
    at = at + 2
  end
end
