-- dispenser_answer: answers that are kept under the caller's key, so that a repeat gets the same.

-- How long an answer is kept.
local ANSWER_FOR_MS = '3600000'

-- The length separates the two names, which may have any bytes.
local function answer_key(pool, assignee, name)
  return key_of(pool, 'answer', #assignee .. ':' .. assignee .. ':' .. name)
end

-- Returns the answer that was given under this name, and whether that was to another request.
local function kept_answer(pool, assignee, name, digest)
  if name == '' then
    return nil
  end
  local kept = redis.call('GET', answer_key(pool, assignee, name))
  if not kept then
    return nil
  end
  local of, at = string.match(kept, '^(%S+) ()')
  if of ~= digest then
    return nil, true
  end
  local reply = {}
  while at <= #kept do
    local size, first = string.match(kept, '^(%d+):()', at)
    reply[#reply + 1] = string.sub(kept, first, first + size - 1)
    at = first + size
  end
  return reply
end

-- Keeps the answer if it has a name, and returns it.
local function keep_answer(pool, assignee, name, digest, reply)
  if name ~= '' then
    local words = { digest .. ' ' }
    for i = 1, #reply do
      words[i + 1] = #reply[i] .. ':' .. reply[i]
    end
    redis.call('SET', answer_key(pool, assignee, name), table.concat(words), 'PX', ANSWER_FOR_MS)
  end
  return reply
end
