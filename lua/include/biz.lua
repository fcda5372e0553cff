-- biz: the mark of a biz id, `<owner>:<valid until ms, 0 for none>:<L live | D done>`.

-- The owner of a biz id: while live, the owner if its record exists (a mark without a record frees
-- itself); once done, the owner until the window is over, and when the window ends.
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
