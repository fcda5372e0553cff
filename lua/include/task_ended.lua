-- task_ended: the end of tasks. All ends and all their effects are in this file.

-- Reads every key that an end writes, before the script knows which tasks end. Returns the clients
-- that wait for each task, and which tasks were asked to stop. `queue.flow` is nil unless the queue
-- has had tasks with prerequisites.
local function endings_of(queue, ids)
  if queue.dead then
    redis.call('ZCARD', queue.dead)
  end
  if queue.cancelled then
    redis.call('ZCARD', queue.cancelled)
  end
  local asked = #ids > 0 and redis.call('HLEN', queue.cancel) > 0
  return { meta = queue.meta, flow = queue.flow, ids = {}, states = {}, biz = {}, marks = {},
    clients = {}, stopped = {}, bytes = {}, ended = {},
    intents = asked and redis.call('HMGET', queue.cancel, unpack(ids)) or {},
    waiting = waiters_of(queue.meta, queue.waiters, ids) or {} }
end

-- Ends the task at that position of the ids in that state. `history` is its error history and
-- `record` its record, if the script writes or has read them. `biz` and `mark` are the key and
-- value of its biz id's mark, if the end changes the mark.
local function note_end(endings, position, id, state, history, biz, mark, record)
  local ends = #endings.ids + 1
  endings.ids[ends], endings.states[ends] = id, state
  endings.biz[ends], endings.marks[ends] = biz or false, mark or false
  endings.clients[ends] = endings.waiting[position] or false
  if endings.intents[position] then
    endings.stopped[#endings.stopped + 1] = id
  end
  if state ~= 'success' then
    if endings.is_without_payloads == nil then
      endings.is_without_payloads = is_without_payloads(endings.meta)
    end
    local bytes = kept_bytes(endings.meta, id, history, record, endings.is_without_payloads)
    endings.bytes[state] = (endings.bytes[state] or 0) + bytes
    endings.ended[state] = (endings.ended[state] or 0) + 1
    if endings.flow then
      endings.flow.tell_end(id, state)
    end
  end
end

-- Ends a task as Cancelled in the same way, and frees its biz id.
local function note_cancelled(queue, endings, position, id, header, history, record)
  local key = biz_key(queue.meta, header)
  local mark = key and redis.call('GET', key)
  note_end(endings, position, id, 'cancelled', history, key, mark, record)
end

-- The fields of `meta` with the number of such ends so far.
local ENDS_OF = { dead = 'deaths', cancelled = 'cancels' }

local function write_ends(queue, endings, now)
  if #endings.stopped > 0 then
    redis.call('HDEL', queue.cancel, unpack(endings.stopped))
  end
  local freed, added, now_text = {}, { dead = {}, cancelled = {} }, whole(now)
  for i, id in ipairs(endings.ids) do
    local state, biz = endings.states[i], endings.biz[i]
    local members = added[state]
    if members then
      members[#members + 1], members[#members + 2] = now_text, id
    end
    if biz and biz_ends(biz, endings.marks[i], id, state, now) then
      freed[#freed + 1] = biz
    end
  end
  if #freed > 0 then
    redis.call('UNLINK', unpack(freed))
  end
  for state, bytes in pairs(endings.bytes) do
    redis.call('ZADD', queue[state], unpack(added[state]))
    redis.call('HINCRBY', queue.meta, state .. '_bytes', whole(bytes))
    redis.call('HINCRBY', queue.meta, ENDS_OF[state], whole(endings.ended[state]))
  end
  if endings.flow then
    endings.flow.write(now)
  end
  notify_all(queue.meta, queue.waiters, endings.ids, endings.clients, endings.states)
end
