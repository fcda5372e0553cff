-- ready_plain: which tasks are next in the usual case: none is ranked or due and there are no
-- tombstones.

-- Turns up to `want` entries into ids in place. Returns how many entries it has used, and whether
-- one of the tasks may have been tried before. Entries that are not of Optimus are omitted.
local function plain_ids(entries, want)
  local taken, kept, tried = math.min(#entries, want), 0, false
  for i = 1, taken do
    local entry = entries[i]
    if #entry ~= ID_LENGTH then
      entry, tried = entry_id(entry), true
    end
    if entry then
      kept = kept + 1
      entries[kept] = entry
    end
  end
  for i = kept + 1, #entries do
    entries[i] = nil
  end
  return entries, taken, tried
end
