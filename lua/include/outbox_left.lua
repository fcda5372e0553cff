-- outbox_left: whether effects wait for a relay, also those of a call whose answer was lost.

local function is_outbox_left(meta)
  return redis.call('ZCARD', string.sub(meta, 1, -5) .. 'outboxes') > 0
end
