-- report_extras: the extra parts of completions that are not plain: results, biz ids, and sides.
-- Sides are the data that a task has besides its record: tries, errors, a blob, a priority.

-- The byte of `%`.
local OUTCOME_MARK = 37

-- Returns the results to store; the biz keys, and which of them belongs to each task id; the ids
-- with sides; and how long to remember which tasks, nil if there are none. Extras of reports whose
-- lease belongs to another worker are omitted. The extras are those before `past`; the results
-- follow `past_extras`.
local function read_extras(fixed_keys, first_id, first_extra, past, past_extras, is_held)
  local results, biz_keys, biz_of, sided, remembered = {}, {}, {}, {}, nil
  -- `#` searches for the end of a table.
  local keys_taken, sided_count = 0, 0
  for i = first_extra, past - 1 do
    local extra = ARGV[i]
    local first, last = tonumber(extra), nil
    local sides, result, ttl, body, biz = '1', 0, nil, nil, 0
    if string.byte(extra) == OUTCOME_MARK then
      local position, keep = string.match(extra, '^%%(%d+);(%d+)$')
      position = tonumber(position)
      if not is_held or is_held[position] then
        remembered = remembered or {}
        remembered[ARGV[first_id + position - 1]] = keep
      end
      -- No position is left for what follows.
      first, last = 1, 0
    elseif not first and string.find(extra, ':', 1, true) then
      first, last = string.match(extra, '^(%d+):(%d+)$')
      first, last = tonumber(first), tonumber(last)
    elseif not first then
      first, sides, result, ttl, body, biz =
        string.match(extra, '^(%d+);(%d);(%d+);(%d+);(%d+);(%d+)$')
      first, result, biz = tonumber(first), tonumber(result), tonumber(biz)
    elseif first < 0 then
      first, sides, biz = -first, '0', keys_taken + 1
    end
    keys_taken = math.max(keys_taken, result, biz)
    for position = first, last or first do
      if not is_held or is_held[position] then
        local id = ARGV[first_id + position - 1]
        if sides == '1' then
          sided_count = sided_count + 1
          sided[sided_count] = id
        end
        if result > 0 then
          results[#results + 1] = { key = KEYS[fixed_keys + result], ttl = ttl,
            body = ARGV[past_extras + tonumber(body) - 1] }
        end
        if biz > 0 then
          biz_keys[#biz_keys + 1] = KEYS[fixed_keys + biz]
          biz_of[id] = #biz_keys
        end
      end
    end
  end
  return results, biz_keys, biz_of, sided, remembered
end
