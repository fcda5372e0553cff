-- resize: sets the width of a lane at run time, or removes what was set; Blocked → Ready, up to 128
--
-- What is set wins over the widths that tasks bring, until it is removed. Then the width is that of
-- the first task that waits. A lane that becomes wider offers more tasks at once. A lane that
-- becomes narrower takes nothing back: it offers the next task when fewer than its width have a
-- permit.
--
-- KEYS   the naming block
-- ARGV   1 now override · 2 lane · 3 width; '' to remove what was set
-- REPLY  OK, the width that was set before, 0 for none; '1' if a repeat offers more tasks
-- REFUSE NEWER with the required number

local meta, widths = KEYS[1], KEYS[2]
local now, name, width = now_ms(ARGV[1]), ARGV[2], ARGV[3]
local OFFERED_MAX = 128
-- The largest width that tasks can bring: they may have brought any, once widths were set.
local WIDEST = '65535'

-- Checks.
local facts = redis.call('HMGET', meta, 'needs', 'widest')
local needs = tonumber(facts[1] or 1)
if needs > NEEDS_KNOWN then
  return { 'NEWER', facts[1] }
end
local before = redis.call('HGET', widths, name)
local moves = moves_of(meta)
local wanted = tonumber(width)
if not wanted then
  local key = moves.lane_base .. name
  local next_one = redis.call('ZRANGEBYSCORE', key, '0', '+inf', 'LIMIT', '0', '1')[1]
  local header = next_one and header_with_lane(redis.call('HGET', moves.base .. 'tasks', next_one))
  wanted = header and width_of(header) or 1
end
local lane = lane_in(moves, name, wanted, nil)
lane.most = OFFERED_MAX
pass_permits(moves)
local is_last = before and width == '' and redis.call('HLEN', widths) == 1

-- Writes.
redis.call('HDEL', widths, width == '' and name or '')
if width ~= '' then
  redis.call('HSET', widths, name, width)
  redis.call('HSET', meta, 'widest', WIDTHS_SET)
  if needs < NEEDS_OF_WIDTHS then
    redis.call('HSET', meta, 'needs', NEEDS_OF_WIDTHS)
  end
elseif is_last then
  redis.call('HSET', meta, 'widest', WIDEST)
end
write_moves(moves, now)
local is_more = #moves.going == OFFERED_MAX and lane.left > 0
return { 'OK', before or '0', is_more and '1' or '0' }
