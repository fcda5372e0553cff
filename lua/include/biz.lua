-- biz: the mark of a biz id, `<owner>:<valid until ms, 0 for none>:<L live | D done>`.

-- Who holds it: while live, the owner if its record still stands (a dangling mark heals itself);
-- once done, the owner until the window is over.
local function biz_owner(tasks, mark, now)
  if not mark then
    return nil
  end
  local owner, valid_until, phase = string.match(mark, '^(.-):(%d+):([LD])$')
  if phase == 'L' and redis.call('HEXISTS', tasks, owner) == 1 then
    return owner
  elseif phase == 'D' and now < tonumber(valid_until) then
    return owner
  end
  return nil
end

local function biz_mark(owner, valid_until)
  return owner .. ':' .. whole(valid_until) .. ':L'
end

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

-- The key of a task's mark, from its header; nil if it has none.
local function biz_key(meta, header)
  if type(header.z) == 'string' and type(header.t) == 'string' then
    return derive(meta, 'biz', header.t .. ':' .. header.z)
  end
  return nil
end
