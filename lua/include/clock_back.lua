-- clock_back: the times that were set before the clock was set back. Without this, gates, runs and
-- permits would wait until the old time comes again.
--
-- Gates and runs are due now: the next claims look at them, and a gate that is still closed gets
-- its time by the present clock. Permits outside tasks, and gates that a report has shut, end as
-- much earlier as the clock was set back, but not within a usual time from now: a program may have
-- set them by the present clock, and it renews its permit within that time. Tasks are due, and give
-- up, at the instants that were asked for.

-- A call moves at most this many times of each key. `back` in `meta` has the highest that is left
-- in `gates` and `gathers`.
local MOVED_MAX = 500
-- A usual permit ends after this time.
local KEPT_MS = 30000

-- Returns the times of a key after this instant, the latest first, and the last of them if there
-- may be more.
local function times_after(key, now, bound)
  local found = redis.call('ZRANGE', key, bound, '(' .. whole(now), 'BYSCORE', 'REV', 'LIMIT', '0',
    whole(MOVED_MAX), 'WITHSCORES')
  return found, #found == 2 * MOVED_MAX and tonumber(found[#found]) or nil
end

-- `back` has the `gap`, which is how far the clock was set back as a negative number, or the
-- `bound` at which this call continues. Returns a function that writes.
local function moved_back(meta, now, back)
  local base, changes, left = string.sub(meta, 1, -5), {}, nil
  for _, name in ipairs({ 'gates', 'gathers' }) do
    local found, last = times_after(base .. name, now, back.bound or '+inf')
    left = last and math.max(left or last, last) or left
    for i = 1, #found, 2 do
      found[i], found[i + 1] = whole(now), found[i]
    end
    changes[#changes + 1] = { base .. name, found }
  end
  for _, name in ipairs(back.gap and { 'loans', 'shut' } or {}) do
    -- A gate that is paused is shut until infinity.
    local found = times_after(base .. name, now, '(+inf')
    for i = 1, #found, 2 do
      local ends = tonumber(found[i + 1])
      found[i + 1] = found[i]
      found[i] = whole(math.max(ends + back.gap, math.min(ends, now + KEPT_MS)))
    end
    changes[#changes + 1] = { base .. name, found }
  end
  local due = redis.call('HGET', meta, 'due')
  redis.call('LLEN', base .. 'wake')

  return function()
    for i, change in ipairs(changes) do
      if #change[2] > 0 then
        redis.call('ZADD', change[1], unpack(change[2]))
        wake_worker(base .. 'wake')
        if i <= 2 then
          due_at_latest(meta, base .. 'wake', due, now)
        end
      end
    end
    if left then
      redis.call('HSET', meta, 'back', whole(left))
    elseif back.bound then
      redis.call('HDEL', meta, 'back')
    end
  end
end
