-- checkpoint: the holder of a post stores how far it has come
--
-- Once each post of a generation has a position, those of earlier generations are removed.
--
-- KEYS   the naming block
-- ARGV   1 worker · 2 post · 3 fence · 4 generation of the post · 5 position as JSON, '' at the end
--        of the pass
-- REPLY  OK
-- REFUSE STALE if the caller does not hold the post under that fence, or the pass has ended

local posts, positions, generations = KEYS[1], KEYS[2], KEYS[3]
local worker, post, fence, generation, position = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
-- At most this many old positions are removed by one call.
local OLD_MAX = 2000

-- Checks.
local owned = worker .. ' ' .. fence .. ' '
local value = redis.call('HGET', posts, post)
if not value or string.sub(value, 1, #owned) ~= owned then
  return { 'STALE' }
end
-- A pass that started again has forgotten the generation.
local count = tonumber(redis.call('HGET', generations, generation))
if not count then
  return { 'STALE' }
end
local old_positions, old_generations = {}, {}
if redis.call('HEXISTS', positions, post) == 0 and redis.call('HLEN', positions) + 1 >= count then
  local present, mine = 1, tonumber(generation)
  for _, field in ipairs(redis.call('HKEYS', positions)) do
    local its = tonumber(string.match(field, '^%d+')) or mine
    if its == mine then
      present = present + 1
    elseif its < mine and #old_positions < OLD_MAX then
      old_positions[#old_positions + 1] = field
    end
  end
  if present < count then
    old_positions = {}
  else
    for _, old in ipairs(redis.call('HKEYS', generations)) do
      if tonumber(old) < mine then
        old_generations[#old_generations + 1] = old
      end
    end
  end
end

-- Writes.
redis.call('HDEL', positions, '')
redis.call('HSET', positions, post, position)
if #old_positions > 0 then
  redis.call('HDEL', positions, unpack(old_positions))
end
if #old_generations > 0 then
  redis.call('HDEL', generations, unpack(old_generations))
end
return { 'OK' }
