-- task_header: the JSON of Optimus at the start of a record. For rare paths only: no usual call of
-- submit, claim or complete decodes it.

-- Decodes the header of a record. A header that cannot be read counts as empty, so that a damaged
-- record can still be reaped and purged.
local function header_of(record)
  local start = record and (string.sub(record, 1, 1) == '{' and 1 or 9)
  local stop = record and string.find(record, '\n', start, true)
  if stop then
    local ok, header = pcall(cjson.decode, string.sub(record, start, stop - 1))
    if ok and type(header) == 'table' then
      return header
    end
  end
  return {}
end
