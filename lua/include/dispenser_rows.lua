-- dispenser_rows: what people see of a dispenser.

-- Adds the counts to a reply.
local function add_counts(keys, dispenser, now, reply)
  local head = redis.call('ZRANGE', keys.pool, 0, 0, 'WITHSCORES')
  reply[#reply + 1] = whole(redis.call('ZCARD', keys.pool))
  reply[#reply + 1] = whole(redis.call('HLEN', keys.holders))
  reply[#reply + 1] = whole(redis.call('ZCARD', keys.assignees))
  reply[#reply + 1] = head[2] and whole(math.floor(tonumber(head[2]) / PLACES_A_MS)) or ''
  reply[#reply + 1] = whole(now)
  reply[#reply + 1] = open_rebuild(dispenser, now) and '1' or '0'
  return reply
end

-- Adds a page to a reply, three words a row.
local function add_rows(keys, what, first, count, reply)
  local zset = what == 'open' and keys.pool or what == 'assigned' and keys.deadlines
    or keys.assignees
  local found = redis.call('ZRANGE', zset, first, first + count - 1, 'WITHSCORES')
  local names, more = {}, {}
  for i = 1, #found, 2 do
    names[#names + 1] = found[i]
  end
  if what ~= 'assignees' and names[1] then
    more = redis.call('HMGET', what == 'open' and keys.returned or keys.holders, unpack(names))
  end
  for i = 1, #names do
    reply[#reply + 1] = names[i]
    if what == 'open' then
      reply[#reply + 1] = found[2 * i]
      reply[#reply + 1] = more[i] or ''
    elseif what == 'assigned' then
      local _, holder = holder_of(more[i] or '0:')
      reply[#reply + 1] = holder
      reply[#reply + 1] = found[2 * i]
    else
      reply[#reply + 1] = found[2 * i]
      reply[#reply + 1] = whole(redis.call('ZCARD', key_of(keys.pool, 'bucket', names[i])))
    end
  end
  return reply
end
