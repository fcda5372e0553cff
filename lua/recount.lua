-- recount: a generation of posts → the next one, with another count or from the beginning
--
-- The holders of the old generation give their posts back, and only then the new posts are granted.
-- The positions of earlier generations stay until each new post has its own, because new posts
-- begin at the smallest of them; a pass that starts again forgets them. The suspensions of single
-- posts end with another count.
--
-- KEYS   the naming block
-- ARGV   1 now override · 2 count, '' to keep it · 3 '1' to start from the beginning, else '0'
-- REPLY  OK, generation, count, count before
-- REFUSE ABSENT if no member has ever held a post of the roster

local meta, suspended, generations, positions = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now, count, is_restart = now_ms(ARGV[1]), tonumber(ARGV[2]), ARGV[3] == '1'
-- Positions of earlier generations are not read.
local GENERATIONS_MAX = 16

-- Checks.
local known = roster_of(meta, now, 0)
if known.count == 0 then
  return { 'ABSENT' }
end
count = count or known.count
if count == known.count and not is_restart then
  return { 'OK', whole(known.generation), whole(count), whole(count) }
end
local old = redis.call('HKEYS', generations)
table.sort(old, function(a, b) return tonumber(a) > tonumber(b) end)
local forgotten, single = {}, {}
for i, generation in ipairs(old) do
  if is_restart or i >= GENERATIONS_MAX then
    forgotten[#forgotten + 1] = generation
  end
end
-- A number belongs to other rows once the count has changed.
for _, index in ipairs(redis.call('HKEYS', suspended)) do
  if index ~= '*' and count ~= known.count then
    single[#single + 1] = index
  end
end
redis.call('HLEN', positions)
local fresh = whole(known.fresh)

-- Writes.
redis.call('HDEL', meta, '')
redis.call('HSET', meta, 'generation', fresh, 'count', whole(count), 'fence', fresh)
redis.call('HSET', generations, fresh, whole(count))
if #forgotten > 0 then
  redis.call('HDEL', generations, unpack(forgotten))
end
if #single > 0 then
  redis.call('HDEL', suspended, unpack(single))
end
if is_restart then
  -- Positions in other databases belong to the passes before this generation.
  redis.call('HSET', meta, 'restarted', fresh)
  redis.call('UNLINK', positions)
end
return { 'OK', fresh, whole(count), whole(known.count) }
