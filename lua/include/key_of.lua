-- key_of: keys that a caller cannot name, because the script itself finds the id.

-- Returns a key of the queue. Every key of a queue has the same prefix and hash tag as `meta`, so
-- all are in one cluster slot.
local function key_of(meta, kind, name)
  return string.sub(meta, 1, -5) .. kind .. ':' .. name
end
