-- dispenser_held: the items that the caller of a script holds.

-- Reads the caller's bucket: the items in order, what `holders` says of each, and, if the bucket is
-- empty, how many items all assignees hold. Items whose time is over go back, also those beyond the
-- bounds of `lost_items`.
local function held_items(back, bucket, assignee, now)
  local items = redis.call('ZRANGE', bucket, '0', '-1')
  if not items[1] then
    return items, {}, redis.call('HLEN', back.keys.holders)
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

-- Adds items to a reply, with what `holders` says of each. Items of one call have one text, so each
-- run of such items has it once, after their number.
local function add_held(reply, items, texts)
  local first = 1
  for i = 1, #items do
    if i == #items or texts[i] ~= texts[i + 1] then
      reply[#reply + 1] = whole(i - first + 1)
      reply[#reply + 1] = texts[i]
      for at = first, i do
        reply[#reply + 1] = items[at]
      end
      first = i + 1
    end
  end
end
