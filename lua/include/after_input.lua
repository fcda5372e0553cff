-- after_input: results that are handed on. A task can take the result of its first prerequisite as
-- an argument. Its record, or its blob, ends where the result belongs, and the `i` of its header is
-- what follows the result. The script that strikes the prerequisite adds both.

-- A payload above this is in `blobs`, so that claims do not pass it on.
local RECORD_PAYLOAD_MAX = 16384
-- An effect has a result of up to this many bytes. Of a larger one it has the task, and the relay
-- fetches the result.
local EFFECT_RESULT_MAX = 16384

-- The prerequisite of a task is met, and this is its result. Reads the keys that `write_inputs`
-- writes. `flow.grown` has by how many bytes the task grows.
local function take_input(flow, id, result)
  local record = redis.call('HGET', flow.base .. 'tasks', id)
  local header = header_of(record)
  if type(header.i) ~= 'string' then
    return
  end
  flow.inputs, flow.grown = flow.inputs or { tasks = {}, blobs = {} }, flow.grown or {}
  local inputs, rest = flow.inputs, result .. header.i
  flow.grown[id] = #rest
  local line = string.find(record, '\n', 1, true)
  if header.x then
    rest = (redis.call('HGET', flow.base .. 'blobs', id) or '') .. rest
  elseif #record - line + #rest > RECORD_PAYLOAD_MAX then
    redis.call('HLEN', flow.base .. 'blobs')
    local mark = ',"x":true'
    inputs.tasks[#inputs.tasks + 1] = id
    inputs.tasks[#inputs.tasks + 1] = string.sub(record, 1, line - 2) .. mark .. '}\n'
    flow.grown[id] = #rest + #mark
    rest = string.sub(record, line + 1) .. rest
  else
    inputs.tasks[#inputs.tasks + 1], inputs.tasks[#inputs.tasks + 2] = id, record .. rest
    return
  end
  inputs.blobs[#inputs.blobs + 1], inputs.blobs[#inputs.blobs + 2] = id, rest
end

local function write_inputs(flow)
  for key, values in pairs(flow.inputs or {}) do
    if #values > 0 then
      redis.call('HSET', flow.base .. key, unpack(values))
    end
  end
end

-- A result as an effect has it.
local function result_word(id, result)
  return #result > EFFECT_RESULT_MAX and '*' .. id or '=' .. result
end
