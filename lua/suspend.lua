-- suspend: a post of a roster, or all of them, on or off
--
-- A suspended post is not granted, and its holder gives it back at the next `hold`.
--
-- KEYS   the naming block
-- ARGV   1 now override · 2 '1' to suspend, '0' to resume · 3 number of the post, '*' for all; to
--        resume all also resumes single posts · 4 who · 5 why
-- REPLY  OK, '1' if that changed something, '1' if the roster is known: a member has served it
-- REFUSE ABSENT with the count if there is no post of that number

local meta, suspended = KEYS[1], KEYS[2]
local now, is_on, post, who, why = now_ms(ARGV[1]), ARGV[2] == '1', ARGV[3], ARGV[4], ARGV[5]

-- Checks.
local count = redis.call('HGET', meta, 'count')
local index = tonumber(post)
if index and index >= tonumber(count or 0) then
  return { 'ABSENT', count or '0' }
end
local was_on = redis.call('HEXISTS', suspended, post) == 1
local size = redis.call('HLEN', suspended)

-- Writes.
redis.call('HDEL', suspended, '')
if is_on then
  redis.call('HSET', suspended, post, whole(now) .. ' ' .. who .. '\n' .. why)
elseif index then
  redis.call('HDEL', suspended, post)
else
  redis.call('UNLINK', suspended)
end
local is_changed = is_on ~= was_on
if not is_on and not index then
  is_changed = size > 0
end
return { 'OK', is_changed and '1' or '0', count and '1' or '0' }
