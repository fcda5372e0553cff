-- roster_share: which posts of a roster a member keeps, takes and gives back.

-- Returns the share of a member, and what other members lack. What a member gives back depends only
-- on the members that have settled, and on the caller.
local function share_of(list, members, active, is_leaving)
  local own = is_leaving and 0 or 1
  local sharing, settled = #members.sharing + own, own
  for _, name in ipairs(members.sharing) do
    settled = settled + (members.settled[name] and 1 or 0)
  end
  sharing, settled = math.max(sharing, 1), math.max(settled, 1)
  local share = {
    floor = math.floor(active / sharing), ceil = math.ceil(active / sharing),
    keep_floor = math.floor(active / settled), keep_ceil = math.ceil(active / settled),
    wanted = 0, lacked = -list.dropping,
  }
  for _, name in ipairs(members.sharing) do
    local has = list.load[name] or 0
    share.wanted = share.wanted + math.max(0, share.floor - has)
    if members.settled[name] then
      share.lacked = share.lacked + math.max(0, share.keep_floor - has)
    end
  end
  return share
end

-- Marks what the caller must give back. Returns the posts that it keeps, and whether somebody holds
-- a post of an earlier generation.
local function kept_of(list, prefix, facts)
  local kept, is_old, size = {}, list.is_old, #prefix
  for post, held in pairs(list.held) do
    local is_present = string.sub(post, 1, size) == prefix
    local index = string.sub(post, size + 1)
    local is_stopped = facts.stopped['*'] or facts.stopped[index]
      or is_present and index + 0 >= facts.count
    is_old = is_old or not is_present
    list.used = list.used + (is_present and 1 or 0)
    if held.flag == 'keep' then
      if facts.is_leaving or is_stopped or not is_present then
        held.flag, held.is_new = 'drop', true
      else
        kept[#kept + 1] = post
      end
    end
  end
  return kept, is_old
end

-- Returns the free posts of the present generation. What the caller had comes first.
local function free_of(list, prefix, facts)
  local first, free = {}, {}
  if list.used < facts.count and not facts.stopped['*'] then
    for index = 0, facts.count - 1 do
      local post = prefix .. index
      if not (list.held[post] or list.taken[post] or facts.stopped[tostring(index)]) then
        local part = list.own_free[post] and first or free
        part[#part + 1] = post
      end
    end
  end
  for _, post in ipairs(free) do
    first[#first + 1] = post
  end
  return first
end

-- Returns what the caller holds from now on, as a reply, and what must be written.
local function given_to(list, share, facts)
  local prefix = whole(facts.generation) .. '/'
  local kept, is_old = kept_of(list, prefix, facts)
  local free = free_of(list, prefix, facts)
  local mine = #kept
  local shed = math.max(mine - share.keep_ceil,
    math.min(share.lacked - #free, mine - share.keep_floor), 0)
  if shed > 0 then
    table.sort(kept)
  end
  for i = 1, shed do
    local held = list.held[kept[#kept + 1 - i]]
    held.flag, held.is_new = 'drop', true
  end
  mine = mine - shed
  local given = { fence = facts.fresh - 1, changed = {}, granted = {}, gone = {}, reply = {} }
  local spare = #free - math.max(0, share.floor - mine) - share.wanted
  local takes = not facts.is_leaving and not is_old and facts.may_grant
  for _, post in ipairs(takes and free or {}) do
    if mine >= share.ceil or mine >= share.floor and spare <= 0 then
      break
    end
    if mine >= share.floor then
      spare = spare - 1
    end
    list.held[post] = { fence = whole(facts.fresh), flag = 'keep', is_new = true }
    list.gone[post], given.fence, mine = nil, facts.fresh, mine + 1
  end
  given.mine, given.waits = mine, is_old and mine < share.ceil
  local reply, n = given.reply, 0
  for post, held in pairs(list.held) do
    if held.is_new then
      local since = held.stored and string.match(held.stored, '%d+$') or whole(facts.now)
      given.changed[#given.changed + 1] = post
      given.changed[#given.changed + 1] =
        table.concat({ facts.worker, held.fence, held.flag, since }, ' ')
    end
    if not held.stored then
      given.granted[#given.granted + 1] = string.match(post, '%d+$')
      given.granted[#given.granted + 1] = held.fence
    end
    -- One word costs less than three.
    n = n + 1
    reply[n] = post .. ' ' .. held.fence .. ' ' .. held.flag
  end
  for post in pairs(list.gone) do
    given.gone[#given.gone + 1] = post
  end
  return given
end
