-- survey: what a worker tells of a source, and what it asks
--
-- A worker tells how many tasks of the source have succeeded and failed, and how far its slices
-- are. If half of the last hundred attempts have failed, the source is slow: workers read no pages
-- then, except one of them a short page from time to time, as a probe. The source is slow until
-- more attempts of one call have succeeded than failed.
--
-- KEYS   the naming block
-- ARGV   1 now override · 2 successes and 3 failures since the last call · 4 ms between two probes,
--        '' to ask for none · 5 the last request to scan at once that the caller knows, or 0 ·
--        then slice and its figures as JSON each
-- REPLY  OK, now ms, ms when an operator has asked to scan at once or 0, ms since when the source
--        is slow or 0, '1' if the caller may probe
-- REFUSE ABSENT if no worker has ever held a slice of the source

local meta, control, scans = KEYS[1], KEYS[2], KEYS[3]
local now, ok, failed = now_ms(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local probe_ms, heard, figures = tonumber(ARGV[4]), tonumber(ARGV[5]), 5
-- Older attempts count less, so that together they are at most this many.
local LAST = 100
-- Fewer attempts show nothing.
local LEAST = 20

-- Checks.
if redis.call('HEXISTS', meta, 'generation') == 0 then
  return { 'ABSENT' }
end
local known = redis.call('HMGET', control, 'ok', 'failed', 'slow_since', 'probed_at', 'scan_at')
local all_ok, all_failed = tonumber(known[1] or 0), tonumber(known[2] or 0)
local slow_since, probed_at = tonumber(known[3] or 0), tonumber(known[4] or 0)
redis.call('HLEN', scans)
-- Attempts from before the last request say nothing about the time after it.
if heard ~= tonumber(known[5] or 0) then
  ok, failed = 0, 0
end
if slow_since > 0 and ok > failed then
  slow_since, all_ok, all_failed = 0, 0, 0
elseif slow_since == 0 then
  all_ok, all_failed = all_ok + ok, all_failed + failed
  local all = all_ok + all_failed
  if all > LAST then
    all_ok, all_failed = all_ok * LAST / all, all_failed * LAST / all
  end
  if all >= LEAST and all_failed >= all_ok then
    slow_since, probed_at = now, now
  end
end
-- The clock may have been set back.
local is_due = now - probed_at >= (probe_ms or 0) or now < probed_at
local may_probe = slow_since > 0 and probe_ms and is_due
if may_probe then
  probed_at = now
end

-- Writes.
redis.call('HDEL', control, '')
redis.call('HSET', control, 'ok', string.format('%.3f', all_ok),
  'failed', string.format('%.3f', all_failed), 'slow_since', whole(slow_since),
  'probed_at', whole(probed_at))
if #ARGV > figures then
  redis.call('HSET', scans, unpack(ARGV, figures + 1))
end
return { 'OK', whole(now), known[5] or '0', whole(slow_since), may_probe and '1' or '0' }
