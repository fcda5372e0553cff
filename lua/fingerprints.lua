-- fingerprints: the dead tasks of a part of the list, by the fingerprints of their last errors
--
-- KEYS   the naming block
-- ARGV   1 the last task that was read, '' at first · 2 the ms when it died · 3 how many to read
-- REPLY  OK, how many tasks are dead, how many were read, the last of them and the ms when it
--        died; then for each fingerprint: its text, '' for errors without one, the reason, '' if it
--        is not known, how many tasks, the ms when the first and the last of them died, the last

local dead, errors = KEYS[1], KEYS[2]
local after, after_ms, most = ARGV[1], ARGV[2], tonumber(ARGV[3])
local READ_MAX, BYTES_MAX = 500, 1048576

-- Checks.
local from = 0
if after ~= '' then
  -- A task that has left no longer shows its place.
  local rank = redis.call('ZRANK', dead, after)
  from = rank and rank + 1 or redis.call('ZCOUNT', dead, '-inf', after_ms)
end
local last = from + math.min(most, READ_MAX) - 1
local found = redis.call('ZRANGE', dead, from, last, 'WITHSCORES')
local order, groups, read, bytes = {}, {}, 0, 0
for i = 1, #found, 2 do
  local id, at = found[i], found[i + 1]
  local history = redis.call('HGET', errors, id) or ''
  local line = last_line(history)
  -- A worker writes the reason first and the fingerprint last. Quotes inside a message are escaped.
  local reason = string.match(line, '^%d+ {"reason":"([%a_]+)"') or ''
  local print = string.match(line, ',"fp":"([-%w_]+)"}$') or ''
  local name = print .. ' ' .. reason
  local group = groups[name]
  if not group then
    group = { print = print, reason = reason, count = 0, first = at }
    groups[name], order[#order + 1] = group, group
  end
  group.count, group.last, group.sample = group.count + 1, at, id
  after, after_ms, read, bytes = id, at, read + 1, bytes + #history
  if bytes > BYTES_MAX then
    break
  end
end
local reply = { 'OK', redis.call('ZCARD', dead), read, after, after_ms }
for _, group in ipairs(order) do
  for _, word in ipairs({ group.print, group.reason, group.count, group.first, group.last,
    group.sample }) do
    reply[#reply + 1] = word
  end
end
return reply
