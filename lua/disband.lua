-- disband: cancels a group that has not ended, or removes a group
--
-- Those who wait for the group learn that it was cancelled, which no requeue can change. Its
-- members continue and no longer count; the client cancels them.
--
-- KEYS   the naming block; the last key has the name of the group
-- ARGV   1 now override · 2 group · 3 `1` to remove it, else ''
-- REPLY  OK, `1` if effects wait for a relay
-- REFUSE NEWER with the required number

local meta, groups, group = KEYS[1], KEYS[2], KEYS[3]
local now, gid, removes = now_ms(ARGV[1]), ARGV[2], ARGV[3] == '1'

-- Checks.
local needs = redis.call('HGET', meta, 'needs')
if needs and tonumber(needs) > NEEDS_KNOWN then
  return { 'NEWER', needs }
end
local flow, found = flow_of(meta), group_of(string.sub(meta, 1, -5), gid)
local is_left = is_outbox_left(meta)
if not found or found.state and not removes then
  return { 'OK', is_left and '1' or '0' }
end
redis.call('ZCARD', groups)
redis.call('HLEN', found.results_key)
if redis.call('HEXISTS', flow.ties_key, gid) == 1 then
  post(flow, flow.own, 'end ' .. VOID .. ' 0 ' .. gid)
end

-- Writes.
redis.call('HDEL', group, '')
if removes then
  redis.call('UNLINK', group, found.results_key)
  redis.call('ZREM', groups, gid)
else
  write_group_end(flow.base, found, 'cancelled', now)
end
write_posts(flow, now)
return { 'OK', (is_left or #flow.targets > 0) and '1' or '0' }
