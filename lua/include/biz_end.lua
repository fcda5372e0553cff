-- biz_end: what becomes of the mark of a biz id when its owner ends.

-- After success the mark lasts until its window is over; only its owner may touch it.
local function biz_succeed(key, mark, id, now)
  local owner, valid_until = string.match(mark or '', '^(.-):(%d+):[LD]$')
  if owner ~= id then
    return
  end
  if tonumber(valid_until) > now then
    redis.call('SET', key, owner .. ':' .. valid_until .. ':D',
      'PX', whole(tonumber(valid_until) - now))
  else
    redis.call('UNLINK', key)
  end
end

local function biz_release(key, mark, id)
  if string.match(mark or '', '^(.-):') == id then
    redis.call('UNLINK', key)
  end
end
