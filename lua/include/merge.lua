-- merge: who is next in line. Entries of the line in their order, the ranked among them by score.

-- Nobody is ranked and there are no tombstones: the usual case, so it is kept short. Turns up to
-- `want` entries into ids in place; how many it took. Entries that are none of ours are left out.
local function plain_ids(line, want)
  local taken, kept = math.min(#line, want), 0
  for i = 1, taken do
    local entry = line[i]
    if #entry ~= ID_LENGTH then
      entry = entry_id(entry)
    end
    if entry then
      kept = kept + 1
      line[kept] = entry
    end
  end
  for i = kept + 1, #line do
    line[i] = nil
  end
  return line, taken
end

-- The ids that are next; how many entries of the line, and which of the ranked, that takes; and
-- how often a tombstone of each id was passed over. `skips` counts them by id.
local function merged_ids(line, ranked, skips, want)
  local ids, taken, unranked, passed = {}, 0, {}, {}
  while #ids < want do
    local entry, id = line[taken + 1], ranked[2 * #unranked + 1]
    if not entry and taken > want then
      -- Tombstones were all that was looked at; who stands behind them may be before the ranked.
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

-- An id without a record is damage, and is dropped.
local function with_records(ids, records)
  local whole_ones = true
  for i = 1, #ids do
    whole_ones = whole_ones and records[i]
  end
  if whole_ones then
    return ids, records
  end
  local kept_ids, kept_records = {}, {}
  for i = 1, #ids do
    if records[i] then
      kept_ids[#kept_ids + 1] = ids[i]
      kept_records[#kept_records + 1] = records[i]
    end
  end
  return kept_ids, kept_records
end
