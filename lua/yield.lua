-- yield: held → free: a member of a roster gives posts back, and may leave
--
-- A post that the caller does not hold under that fence is not changed. A member that leaves and
-- still holds a post stays, and its lease ends by itself.
--
-- KEYS   the naming block
-- ARGV   1 worker · 2 '1' if it leaves, else '0' · then post and fence each
-- REPLY  OK, how many posts it gave back, how many it still holds

local workers, joined, posts, worker_info = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local worker, is_leaving, shown = ARGV[1], ARGV[2] == '1', 2

-- Checks.
local back, given = {}, {}
for i = shown + 1, #ARGV, 2 do
  given[ARGV[i]] = ARGV[i + 1]
end
local all, left = redis.call('HGETALL', posts), 0
for i = 1, #all, 2 do
  local holder, fence = string.match(all[i + 1], '^(%S+) (%d+) ')
  if holder == worker then
    if given[all[i]] == fence then
      back[#back + 1] = all[i]
    else
      left = left + 1
    end
  end
end
redis.call('ZCARD', workers)
redis.call('HLEN', joined)
redis.call('HLEN', worker_info)

-- Writes.
if #back > 0 then
  redis.call('HDEL', posts, unpack(back))
end
if is_leaving and left == 0 then
  redis.call('ZREM', workers, worker)
  redis.call('HDEL', joined, worker)
  redis.call('UNLINK', worker_info)
end
return { 'OK', whole(#back), whole(left) }
