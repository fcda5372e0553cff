-- after_post: effects on other queues, and on this one later. A relay carries them from `outbox:`.

-- Posts an effect. Reads the keys that `write_posts` writes.
local function post(flow, queue, effect)
  local outbox = flow.outboxes[queue]
  if not outbox then
    if #flow.targets == 0 then
      flow.posted = tonumber(redis.call('HGET', flow.meta, 'posted') or 0)
      redis.call('ZCARD', flow.base .. 'outboxes')
    end
    outbox = { key = flow.base .. 'outbox:' .. queue }
    outbox.size = redis.call('ZCARD', outbox.key)
    flow.outboxes[queue] = outbox
    flow.targets[#flow.targets + 1] = queue
  end
  outbox[#outbox + 1] = effect
end

-- Numbers grow with the clock, as fences do: a queue that lost its last writes does not use a
-- number again that a target has seen.
local function write_posts(flow, now)
  if #flow.targets == 0 then
    return
  end
  local number = math.max(flow.posted, now * 1024)
  for _, queue in ipairs(flow.targets) do
    local outbox, members = flow.outboxes[queue], {}
    for _, effect in ipairs(outbox) do
      number = number + 1
      local text = whole(number)
      members[#members + 1], members[#members + 2] = text, text .. ' ' .. effect
    end
    for first = 1, #members, 4000 do
      redis.call('ZADD', outbox.key, unpack(members, first, math.min(first + 3999, #members)))
    end
    if outbox.size == 0 then
      redis.call('ZADD', flow.base .. 'outboxes', whole(now), queue)
    end
  end
  redis.call('HSET', flow.meta, 'posted', whole(number))
end
