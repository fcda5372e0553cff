-- dispenser_pick: the items that an assignee gets next.

-- So many items of the pool are looked at, if the assignee may not have the first ones.
local LOOKED_MAX, PAGE = 1024, 128

-- Compares two items by rank, then by name, as the pool does.
local function is_before(one, other)
  local a, b = tonumber(one[2]), tonumber(other[2])
  return a < b or a == b and one[1] < other[1]
end

-- Returns whether the last holder does not get an item now. A time that is too far away was set
-- before the clock was set back.
local function is_barred(back, until_ms, now)
  return until_ms > now and until_ms <= now + back.hold_ms
end

-- Returns whether an item with this note, of `returned`, is barred for the assignee.
local function is_barred_for(back, note, assignee, now)
  local until_ms, by = string.match(note or '', '^%d+ (%d+) (.*)$')
  return by == assignee and is_barred(back, tonumber(until_ms), now)
end

-- Returns up to that many first items of the pool, or nil if the assignee may not have all of them.
local function first_items(back, assignee, now, count_text, has_notes)
  local first = redis.call('ZRANGE', back.keys.pool, '0', count_text)
  first[count_text + 1] = nil
  if has_notes and first[1] then
    local notes = redis.call('HMGET', back.keys.returned, unpack(first))
    for i = 1, #first do
      if notes[i] and is_barred_for(back, notes[i], assignee, now) then
        return nil
      end
    end
  end
  return first
end

-- Returns the first items of the pool that the assignee may have, each with its rank.
local function allowed_items(back, assignee, now, count)
  local allowed, first, size = {}, 0, count
  while #allowed < 2 * count and first < LOOKED_MAX do
    local page = redis.call('ZRANGE', back.keys.pool, first, first + size - 1, 'WITHSCORES')
    local items = {}
    for i = 1, #page, 2 do
      items[#items + 1] = page[i]
    end
    local notes = items[1] and redis.call('HMGET', back.keys.returned, unpack(items))
    for i = 1, #items do
      if not is_barred_for(back, notes[i], assignee, now) and #allowed < 2 * count then
        allowed[#allowed + 1] = page[2 * i - 1]
        allowed[#allowed + 1] = page[2 * i]
      end
    end
    if #items < size then
      break
    end
    first, size = first + size, PAGE
  end
  return allowed
end

-- Returns the first items that the assignee may have, each with its rank: of the pool and of those
-- that go back to it. Then the last rank, if all items of the pool up to that rank are picked, so
-- that one short command removes them.
local function pick_items(back, assignee, now, count, has_notes)
  if not (has_notes or back.items[1]) then
    local page = redis.call('ZRANGE', back.keys.pool, '0', whole(count), 'WITHSCORES')
    local size = #page
    if size <= 2 * count then
      return page, page[size]
    end
    local last, beyond = page[size - 2], page[size]
    page[size], page[size - 1] = nil, nil
    return page, last ~= beyond and last or nil
  end
  local picked = allowed_items(back, assignee, now, count)
  if not back.items[1] then
    return picked
  end
  local all = {}
  for i = 1, #picked, 2 do
    all[#all + 1] = { picked[i], picked[i + 1] }
  end
  for i = 1, #back.items do
    local item = back.items[i]
    if not (back.barred[item] and back.noted[item] == assignee) then
      all[#all + 1] = { item, back.rank[item] }
    end
  end
  table.sort(all, is_before)
  picked = {}
  for i = 1, math.min(count, #all) do
    picked[2 * i - 1], picked[2 * i] = all[i][1], all[i][2]
  end
  return picked
end

-- Sorts what the assignee held and what it gets.
local function in_order(bucket, items, texts, taken, holder)
  local all = {}
  for i = 1, #items do
    all[i] = { items[i], redis.call('ZSCORE', bucket, items[i]), texts[i] }
  end
  for i = 1, #taken, 2 do
    all[#all + 1] = { taken[i], taken[i + 1], holder }
  end
  table.sort(all, is_before)
  local sorted, sorted_texts = {}, {}
  for i = 1, #all do
    sorted[i], sorted_texts[i] = all[i][1], all[i][3]
  end
  return sorted, sorted_texts
end

-- Returns what the assignee held and what it gets, in the order of the pool, and what `holders`
-- says of each.
local function with_taken(bucket, items, texts, taken, holder)
  local count = #items
  if taken[1] and items[1] then
    local last = tonumber(redis.call('ZSCORE', bucket, items[count]))
    if last >= tonumber(taken[2]) then
      return in_order(bucket, items, texts, taken, holder)
    end
  end
  for i = 1, #taken, 2 do
    count = count + 1
    items[count], texts[count] = taken[i], holder
  end
  return items, texts
end
