-- dispenser_answer: answers that are kept for a repeat of their request, under a name that begins
-- with the caller's.

-- How long an answer is kept.
local ANSWER_FOR_MS = '3600000'

-- Returns the answer that was given under this name, and whether that was to another request.
local function kept_answer(pool, name, digest)
  if name == '' then
    return nil
  end
  local kept = redis.call('GET', key_of(pool, 'answer', name))
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

-- Returns the head of the dispenser; and the reply, if a newer release has changed the dispenser,
-- or if the name has an answer already.
local function begin_request(dispenser, pool, name, digest)
  local head = read_head(dispenser)
  if head.newer then
    return head, { 'NEWER', head.newer }
  end
  local kept_reply, is_other = kept_answer(pool, name, digest)
  return head, is_other and { 'REUSED' } or kept_reply
end

-- Keeps the answer if it has a name, and returns it.
local function keep_answer(pool, name, digest, reply)
  if name ~= '' then
    local words = { digest .. ' ' }
    for i = 1, #reply do
      words[i + 1] = #reply[i] .. ':' .. reply[i]
    end
    redis.call('SET', key_of(pool, 'answer', name), table.concat(words), 'PX', ANSWER_FOR_MS)
  end
  return reply
end
