-- ready_merge: which tasks are next. Entries of the ready list in their order, merged with the
-- ranked tasks by score.

-- Returns the ms since which the task of an entry is ready.
local function entry_since(entry)
  return #entry == ID_LENGTH and born_ms(entry) or tonumber(string.sub(entry, 1, 8), 36) or 0
end

-- Returns the ids that are next; how many entries of the ready list and which ranked tasks they
-- use; and how often a tombstone of each id was skipped. `skips` counts tombstones by id. `is_cut`
-- is true if the ready list continues after these entries.
local function merged_ids(entries, ranked, skips, want, is_cut)
  local ids, taken, unranked, passed = {}, 0, {}, {}
  while #ids < want do
    local entry, id = entries[taken + 1], ranked[2 * #unranked + 1]
    if not entry and is_cut then
      -- An entry that was not read may come before the ranked task.
      break
    elseif id and (not entry or tonumber(ranked[2 * #unranked + 2]) < entry_since(entry)) then
      unranked[#unranked + 1] = id
      ids[#ids + 1] = id
    elseif entry then
      taken = taken + 1
      id = entry_id(entry)
      if id and (skips[id] or 0) > (passed[id] or 0) then
        passed[id] = (passed[id] or 0) + 1
      elseif id then
        ids[#ids + 1] = id
      end
    else
      break
    end
  end
  return ids, taken, unranked, passed
end
