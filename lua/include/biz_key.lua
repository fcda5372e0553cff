-- biz_key: the key of a biz id's mark, built from the task's header.

-- Returns the key, or nil if the task has no biz id.
local function biz_key(meta, header)
  if type(header.z) == 'string' and type(header.t) == 'string' then
    return key_of(meta, 'biz', header.t .. ':' .. header.z)
  end
  return nil
end
