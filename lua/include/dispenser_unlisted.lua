-- dispenser_unlisted: the items of the pool that a rebuild has not listed.

-- Reads one page of the pool after a place, which is a rank, a space and the last item that stays.
-- If that item has left the pool meanwhile, the page begins at its rank. So an item that leaves the
-- pool hides no other. Returns the items to remove after an empty name, and the next place; '' at
-- the end.
local function unlisted_items(pool, seen_key, place, size)
  local rank, last = string.match(place, '^(%S+) (.*)$')
  local first = 0
  if rank and redis.call('ZSCORE', pool, last) == rank then
    first = redis.call('ZRANK', pool, last) + 1
  elseif rank then
    first = redis.call('ZCOUNT', pool, '-inf', '(' .. rank)
  end
  local found = redis.call('ZRANGE', pool, first, first + size - 1, 'WITHSCORES')
  -- A place of no item is the beginning.
  local items, gone, next_place = {}, { '' }, place == '' and '-' or place
  for i = 1, #found, 2 do
    items[#items + 1] = found[i]
  end
  redis.call('HLEN', seen_key)
  if not items[1] then
    return gone, ''
  end
  local seen = redis.call('HMGET', seen_key, unpack(items))
  for i = 1, #items do
    if seen[i] then
      next_place = found[2 * i] .. ' ' .. items[i]
    else
      gone[#gone + 1] = items[i]
    end
  end
  if #items < size then
    return gone, ''
  end
  return gone, next_place
end
