-- success_refs: the references under which tasks wait for a success.

-- The references of a task: its id, and its task name and biz id, as the key of the mark shows
-- them.
local function add_refs(refs, base, id, biz_of, biz_keys)
  refs[#refs + 1] = id
  if biz_of and biz_of[id] then
    refs[#refs + 1] = string.sub(biz_keys[biz_of[id]], #base + 5)
  end
end
