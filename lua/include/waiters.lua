-- waiters: clients that wait for a task to end; each blocks on its own completion list.

local COMPLETIONS_TTL_MS = 60000

-- Returns the clients that wait for each task, as a list with false for a task without any; nil if
-- no task has one.
local function waiters_of(meta, waiters, ids)
  if #ids == 0 or redis.call('HLEN', waiters) == 0 then
    return nil
  end
  local found, seen = redis.call('HMGET', waiters, unpack(ids)), {}
  for i = 1, #ids do
    if found[i] and not seen[found[i]] then
      seen[found[i]] = true
      for client in string.gmatch(found[i], '[^,]+') do
        redis.call('LLEN', key_of(meta, 'completions', client))
      end
    end
  end
  return found
end

-- A completion message is a hint, because each client also checks its tasks regularly. So a
-- completion list may expire; its client may have ended. Each client gets one write, however many
-- tasks end at once.
local function notify_all(meta, waiters, ids, waiting, states)
  local noted, clients, completions = {}, {}, {}
  for i = 1, #ids do
    if waiting[i] then
      noted[#noted + 1] = ids[i]
      for client in string.gmatch(waiting[i], '[^,]+') do
        if not completions[client] then
          clients[#clients + 1], completions[client] = client, {}
        end
        table.insert(completions[client], ids[i] .. ' ' .. states[i])
      end
    end
  end
  if #noted > 0 then
    redis.call('HDEL', waiters, unpack(noted))
  end
  for _, client in ipairs(clients) do
    local completion_listener = key_of(meta, 'completions', client)
    redis.call('RPUSH', completion_listener, unpack(completions[client]))
    redis.call('PEXPIRE', completion_listener, COMPLETIONS_TTL_MS)
  end
end
