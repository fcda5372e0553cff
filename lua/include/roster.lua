-- roster: what is known of a roster, of its members and of its posts.

-- Returns the generation, the count, the next fence and the times. A fence is larger than each one
-- before, also after a failover, unless the failover loses writes and sets the clock back.
local function roster_of(meta, now, heard)
  local known = redis.call('HMGET', meta, 'generation', 'count', 'fence', 'quiet_until',
    'lease_max')
  return {
    generation = tonumber(known[1] or 0), count = tonumber(known[2] or 0),
    fresh = math.max(tonumber(known[3] or 0) + 1, heard + 1, now * 1024),
    quiet_until = tonumber(known[4] or 0), longest_ms = tonumber(known[5] or 0),
  }
end

-- Returns the members other than the caller: which are alive, since when, and which are dead.
-- `sharing` are those that take posts, because they do not leave; `settled` have been here for a
-- while. `changed` has what must be written to `joined`, because the clock was set back.
local function members_of(workers, joined, mending, worker, now, settle_ms, dead_max)
  local mended = {}
  for _, change in ipairs(mending or {}) do
    mended[change.worker] = tonumber(change.expiry)
  end
  local found = { live = {}, sharing = {}, settled = {}, since = {}, dead = {}, changed = {} }
  local joins = redis.call('HGETALL', joined)
  for i = 1, #joins, 2 do
    local since = tonumber(joins[i + 1])
    if since and since > now then
      since = now
      found.changed[#found.changed + 1] = joins[i]
      found.changed[#found.changed + 1] = whole(now)
    end
    found.since[joins[i]] = since
  end
  local all = redis.call('ZRANGE', workers, 0, -1, 'WITHSCORES')
  for i = 1, #all, 2 do
    local name = all[i]
    local since = found.since[name]
    if name == worker then
      found.is_known = true
    elseif (mended[name] or tonumber(all[i + 1])) > now then
      found.live[name] = true
      if since then
        found.sharing[#found.sharing + 1] = name
        found.settled[name] = since + settle_ms <= now or nil
      end
    elseif #found.dead < dead_max then
      found.dead[#found.dead + 1] = name
    end
  end
  -- A member that was away for longer than its lease begins again.
  if not found.is_known then
    found.since[worker] = nil
  end
  return found
end

-- Returns whether Redis has lost a grant of a post that it does not know. The last fence of each
-- number of a post is noted. So a grant that is not later was ended: its holder gave the post back,
-- or looked dead. Nobody holds a post of an earlier generation once one of the present was granted.
local function is_lost(noted, index, fence, generation, is_present)
  if fence <= (noted[index] or 0) then
    return false
  end
  for _, other in pairs(is_present and {} or noted) do
    if other >= generation then
      return false
    end
  end
  return true
end

-- Returns the posts. `held` are those of the caller, `taken` those of other live members,
-- `own_free` those that the caller had and does not name, and `gone` those without a live holder.
-- `load` and `dropping` count the posts of others; `is_old` is set if one is not of this
-- generation. The caller keeps what it names and Redis has lost. `claims` are the fences that it
-- names.
local function list_posts(posts, fences, live, worker, claims, generation)
  local list = { held = {}, taken = {}, own_free = {}, gone = {}, load = {}, dropping = 0, used = 0,
    fence = 0 }
  local prefix = whole(generation) .. '/'
  local held, taken, load, size, match, sub = list.held, list.taken, list.load, #prefix,
    string.match, string.sub
  local all = redis.call('HGETALL', posts)
  for i = 1, #all, 2 do
    local post = all[i]
    local holder, fence, flag = match(all[i + 1], '^(%S+) (%d+) (%a+)')
    local claim = claims[post]
    if claim and claim ~= fence and tonumber(claim) > tonumber(fence) then
      -- Redis has lost the later grant.
    elseif holder == worker then
      if claim == fence then
        held[post] = { fence = fence, flag = flag, stored = all[i + 1] }
      else
        list.own_free[post], list.gone[post] = true, true
      end
      claims[post] = nil
    elseif live[holder] then
      taken[post] = true
      if sub(post, 1, size) ~= prefix then
        list.is_old = true
      elseif flag == 'keep' then
        load[holder], list.used = (load[holder] or 0) + 1, list.used + 1
      else
        list.dropping, list.used = list.dropping + 1, list.used + 1
      end
      claims[post] = nil
    else
      list.gone[post], claims[post] = true, nil
    end
  end
  local noted = {}
  local known = next(claims) and redis.call('HGETALL', fences) or {}
  for i = 1, #known, 2 do
    noted[known[i]] = tonumber(known[i + 1])
  end
  for post, fence in pairs(claims) do
    local is_present, index = sub(post, 1, size) == prefix, match(post, '^%d+/(%d+)$')
    -- Nobody holds posts of two generations. The later one counts.
    if index and (is_present or list.used == 0)
      and is_lost(noted, index, tonumber(fence), generation, is_present) then
      held[post] = { fence = fence, flag = 'keep', is_new = true }
      list.fence = math.max(list.fence, tonumber(fence))
    end
  end
  return list
end

-- Returns which posts are suspended, and how many are not.
local function stopped_of(suspended, count)
  local stopped, active = {}, count
  for _, index in ipairs(redis.call('HKEYS', suspended)) do
    stopped[index] = true
    local number = tonumber(index)
    if number and number < count then
      active = active - 1
    end
  end
  if stopped['*'] then
    active = 0
  end
  return stopped, active
end
