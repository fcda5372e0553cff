-- dispenser_place: where an item is that a caller names and does not hold.

-- Returns a letter: `f` the caller finished it, `F` another did, `a` another holds it, `o` it is in
-- the pool, `u` it is not known. `holder` is what `holders` says of it.
local function place_of(back, item, holder, done, assignee)
  if back.rank[item] then
    return 'o'
  elseif holder then
    return 'a'
  elseif redis.call('ZSCORE', back.keys.pool, item) then
    return 'o'
  end
  local by
  for i = 1, #done do
    by = by or redis.call('HGET', done[i], item)
  end
  return not by and 'u' or by == assignee and 'f' or 'F'
end

-- Separates the named items into those that the caller holds, in `mine`, and letters for the
-- others. An item whose time is over counts as one of the pool, even if no call has put it there.
local function named_items(back, items, done, assignee, now)
  local holders = redis.call('HMGET', back.keys.holders, unpack(items))
  local letters, mine, is_mine = {}, {}, {}
  -- Items that were assigned in one call have one text.
  local text, deadline, by = nil, nil, nil
  for i = 1, #items do
    local item, holder = items[i], holders[i]
    if holder and holder ~= text then
      text = holder
      deadline, by = holder_of(holder)
    end
    if holder and by == assignee and not back.rank[item] and deadline > now then
      letters[i] = 'm'
      if not is_mine[item] then
        is_mine[item] = true
        mine[#mine + 1] = item
      end
    elseif holder and deadline <= now then
      letters[i] = 'o'
    else
      letters[i] = place_of(back, item, holder, done, assignee)
    end
  end
  return mine, letters
end
