-- enroll: adds members to a group; creates the group, and seals it
--
-- A group is named by an id of this queue that no task has, so tasks can wait for it as for a task.
-- It ends when it is sealed and all its members have ended. Members are tasks of any queue whose
-- records name the group and their position in it. This script only gives the positions. So a
-- client enrols members before it submits them, and a client that dies between the two can repeat
-- both: an addition of the same name gets the same positions, if its calls have the same digest.
-- A cancelled group gives none, so nobody stores the members that it lacks: they would run.
-- A group remembers the submit that has made it, so a submit whose answer was lost knows that it
-- was the one.
-- From then on, submits to this queue look whether its members have ended before.
--
-- KEYS   the naming block; the last key has the name of the group
-- ARGV   1 now override · 2 group · 3 name of the addition · 4 how many members · 5 `1` to seal it,
--        else '' · 6 how long it is kept, in ms: after its end, or if it lacks a member since the
--        last addition; '' keeps that time · 7 what a member that fails does to it, as `gp` of a
--        header says it; only for a new group · 8 the digest of the calls, or '' · 9 the name of
--        the submit, or '' · 10 `1` if an earlier addition has made the group, else '' · the queues
--        of these members
-- REPLY  OK, `open`, the first position, how many members it has, `1` if this call has added them,
--        or one of the same submit that has made the group; `1` if effects wait for a relay, the ms
--        when the group was made; or OK, `ended`, its state, and four words without a meaning; or
--        OK, `other`, if the addition was made of other calls, or `gone`, if the group was to be
--        there and is not, and five such words
-- REFUSE NEWER with the required number

local meta, groups, group = KEYS[1], KEYS[2], KEYS[3]
local now, gid, name, count = now_ms(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4])
local seals, keep = ARGV[5] == '1', tonumber(ARGV[6])
local policy, digest, submit, is_later = ARGV[7], ARGV[8], ARGV[9], ARGV[10] == '1'
-- A group that gets more members is kept at least so long after an addition.
local OPEN_MS = 3600000

-- Checks.
local needs = redis.call('HGET', meta, 'needs')
if needs and tonumber(needs) > NEEDS_KNOWN then
  return { 'NEWER', needs }
end
local flow, found = flow_of(meta), group_of(string.sub(meta, 1, -5), gid)
local is_left = is_outbox_left(meta)
local again = nil
local earlier = found and redis.call('HGET', group, '+' .. name)
if earlier then
  local position, made_of = string.match(earlier, '^(%d+) ?(.*)$')
  if made_of ~= digest then
    return { 'OK', 'other', '', '', '', '', '' }
  elseif found.state == 'cancelled' then
    return { 'OK', 'ended', found.state, '', '', '', '' }
  end
  local born, is_again, made_by = unpack(redis.call('HMGET', group, 'born', 'again', 'made_by'))
  local is_own = submit ~= '' and made_by == submit
  again = { 'OK', 'open', position, whole(found.total), is_own and '1' or '0',
    is_left and '1' or '0', born or '0' }
  if count == 0 or is_again or is_own then
    return again
  end
elseif not found and is_later then
  -- A new one would have the positions of its earlier members again.
  return { 'OK', 'gone', '', '', '', '', '' }
elseif found and found.state then
  return { 'OK', 'ended', found.state, '', '', '', '' }
end
local queues, born = '', whole(now)
if found then
  local stored = redis.call('HMGET', group, 'queues', 'born')
  queues, born = stored[1] or '', stored[2] or '0'
end
for i = 11, #ARGV do
  if not string.find(' ' .. queues .. ' ', ' ' .. ARGV[i] .. ' ', 1, true) then
    queues = queues == '' and ARGV[i] or queues .. ' ' .. ARGV[i]
  end
end
local first, done = found and found.total or 0, found and found.done or 0
keep = keep or found and found.keep or 0
local is_sealed, total = seals or found and found.is_sealed, first + count
local ends = not again and is_sealed and done == total
redis.call('ZCARD', groups)
if ends and redis.call('HEXISTS', flow.ties_key, gid) == 1 then
  post(flow, flow.own, 'end success 0 ' .. gid)
end

-- Writes.
redis.call('ZREM', groups, '')
if again then
  -- Two clients may submit these members now.
  redis.call('HSET', group, 'again', '1')
  return again
end
redis.call('HSET', group, 'total', whole(total), 'sealed', is_sealed and '1' or '0', 'keep',
  whole(keep), 'queues', queues, '+' .. name,
  whole(first) .. (digest == '' and '' or ' ' .. digest))
if not found then
  redis.call('HSET', group, 'born', born, 'made_by', submit)
end
if not found and policy ~= '' then
  redis.call('HSET', group, 'policy', policy)
end
redis.call('ZADD', groups, whole(now + (is_sealed and keep or math.max(keep, OPEN_MS))), gid)
if ends then
  redis.call('HSET', group, 'state', 'success')
end
if tonumber(needs or 1) < NEEDS_OF_GROUPS then
  redis.call('HSET', meta, 'needs', NEEDS_OF_GROUPS)
end
write_posts(flow, now)
local is_posted = is_left or #flow.targets > 0
return { 'OK', 'open', whole(first), whole(total), '1', is_posted and '1' or '0', born }
