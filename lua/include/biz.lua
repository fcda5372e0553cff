-- biz: the mark of a biz id, `<owner>:<valid until ms, 0 for none>:<L live | D done>`.

-- Returns the owner of a biz id. While the mark is live, this is the owner if its record exists; a
-- mark without a record frees the id. Once the mark is done, this is the owner until the window is
-- over, with the end of the window.
local function biz_owner(tasks, mark, now)
  if not mark then
    return nil
  end
  local owner, valid_until, phase = string.match(mark, '^(.-):(%d+):([LD])$')
  if phase == 'L' and redis.call('HEXISTS', tasks, owner) == 1 then
    return owner
  elseif phase == 'D' and now < tonumber(valid_until) then
    return owner, valid_until
  end
  return nil
end

local function biz_mark(owner, valid_until)
  return valid_until == 0 and owner .. ':0:L' or owner .. ':' .. whole(valid_until) .. ':L'
end
