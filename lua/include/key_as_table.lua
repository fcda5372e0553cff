-- key_as_table: makes Redis store a small hash or zset as a table, not as a string that it scans.

-- A field or member longer than 64 bytes makes the key a table. It stays a table as long as it
-- exists.
local LONG = '-----------------------------------------------------------------'

-- Adds field, value, … to a hash that has `size` fields.
local function hset_as_table(key, size, values)
  if size == 0 then
    redis.call('HSET', key, LONG, '')
  end
  redis.call('HSET', key, unpack(values))
  if size == 0 then
    redis.call('HDEL', key, LONG)
  end
end

-- Adds score, member, … to a zset that has `size` members.
local function zadd_as_table(key, size, values)
  if size == 0 then
    redis.call('ZADD', key, '0', LONG)
  end
  for first = 1, #values, 4000 do
    redis.call('ZADD', key, unpack(values, first, math.min(first + 3999, #values)))
  end
  if size == 0 then
    redis.call('ZREM', key, LONG)
  end
end
