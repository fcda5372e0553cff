-- biz_end: the change of a biz id's mark when its owner ends.

local function owns_mark(mark, id)
  return mark and string.sub(mark, 1, #id + 1) == id .. ':'
end

-- Returns whether the biz id is free from now on. After a success the mark lasts until its window
-- is over. Only its owner may change it.
local function biz_ends(key, mark, id, state, now)
  if mark == id .. ':0:L' then
    return true
  elseif not owns_mark(mark, id) then
    return false
  end
  local valid_until = tonumber(string.match(mark, '^(%d+)', #id + 2))
  if state == 'success' and valid_until > now then
    redis.call('SET', key, id .. ':' .. whole(valid_until) .. ':D', 'PX', whole(valid_until - now))
    return false
  end
  return true
end
