-- group_ran: which members of groups of other queues have succeeded in this queue. Their group
-- learns of it by an effect, so until then only `ran:<group>` shows it. A bit of a word stands for
-- each position. The words of a group that was removed, and made again later under the same id, do
-- not count: `born` has the ms of the present one, as each word has its own.

local RAN_BITS, RAN_KEPT_MS = 32, '86400000'

-- Reads whether the members with these positions have succeeded. `made` is when the group was made,
-- nil if only a group counts whose members were submitted here.
local function read_ran(base, gid, indexes, made)
  local ran = { key = base .. 'ran:' .. gid, words = {}, changed = {} }
  local fields, words = { 'born' }, {}
  for _, index in ipairs(indexes) do
    local word = math.floor(index / RAN_BITS)
    if not ran.words[word] then
      ran.words[word] = 0
      words[#words + 1], fields[#fields + 1] = word, string.format('%d', word)
    end
  end
  local values = redis.call('HMGET', ran.key, unpack(fields))
  ran.stored = values[1]
  ran.born = made or ran.stored
  for i, word in ipairs(words) do
    local bits, born = string.match(values[i + 1] or '', '^(%d+) (%d+)$')
    if bits and born == ran.born then
      ran.words[word] = tonumber(bits)
    end
  end
  return ran
end

local function has_ran(ran, index)
  local word = ran.words[math.floor(index / RAN_BITS)]
  return math.floor(word / 2 ^ (index % RAN_BITS)) % 2 == 1
end

local function add_ran(ran, index)
  if not has_ran(ran, index) then
    local word = math.floor(index / RAN_BITS)
    ran.words[word] = ran.words[word] + 2 ^ (index % RAN_BITS)
    ran.changed[word] = true
  end
end

-- Writes what was added, and keeps all for another day.
local function write_ran(ran)
  local values = ran.stored ~= ran.born and { 'born', ran.born } or {}
  for word in pairs(ran.changed) do
    values[#values + 1] = string.format('%d', word)
    values[#values + 1] = string.format('%.0f %s', ran.words[word], ran.born)
  end
  if #values > 0 then
    redis.call('HSET', ran.key, unpack(values))
  end
  redis.call('PEXPIRE', ran.key, RAN_KEPT_MS)
end
