-- waiters: clients that wait for a task to end; each has a mailbox list it blocks on.

local MAIL_TTL_MS = 60000

-- Who waits for each task, as a list with false for nobody; nil where nobody waits at all.
local function waiters_of(meta, waiters, ids)
  if #ids == 0 or redis.call('HLEN', waiters) == 0 then
    return nil
  end
  local found = redis.call('HMGET', waiters, unpack(ids))
  for i = 1, #ids do
    for client in string.gmatch(found[i] or '', '[^,]+') do
      redis.call('LLEN', derive(meta, 'mail', client))
    end
  end
  return found
end

-- Mail is a hint, and a client may be gone: it asks again by itself, so its mailbox may expire.
local function notify(meta, waiters, id, clients, state)
  if not clients then
    return
  end
  redis.call('HDEL', waiters, id)
  for client in string.gmatch(clients, '[^,]+') do
    local mailbox = derive(meta, 'mail', client)
    redis.call('RPUSH', mailbox, id .. ' ' .. state)
    redis.call('PEXPIRE', mailbox, MAIL_TTL_MS)
  end
end
