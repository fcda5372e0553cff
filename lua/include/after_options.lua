-- after_options: the prerequisites of the tasks of a submit.

-- How wrong the clock of a client may be if its steps have an age.
local STEP_CLOCK_MS = 3600000

-- Reads the options of prerequisites: which tasks wait for what, have a lane, give up when, and are
-- steps that come before those that they follow.
-- Returns the position after them.
local function read_after_options(found, options, at, ids)
  local after, size = found.after, 0
  while true do
    local option = options[at] or ''
    local position, mark, nth = string.match(option, '^&(%d+);(.);=(%d+)$')
    local home, ref = '', nil
    if nth then
      -- A task of this call, which is new.
      ref = ids[nth + 0]
    else
      position, mark, home, ref = string.match(option, '^&(%d+);(.);([^;]*);(.*)$')
    end
    if not position then
      return at
    end
    position, at = position + 0, at + 1
    if mark == '!' then
      found.give_up[position] = tonumber(ref)
    elseif mark == '@' then
      found.has_lane[position] = true
    elseif mark == '~' then
      found.is_step[position] = true
    else
      size = size + 1
      after[size] = { position = position, mark = mark, home = home, ref = ref,
        state = (nth or home ~= '') and 'open' or nil }
    end
  end
end

-- Which prerequisites are not met. `unmet` has them by position, if there are any. Returns the
-- position of the first other option.
local function read_prerequisites(queue, found, options, at, ids, now)
  found.after, found.give_up, found.has_lane, found.is_step, found.waits = {}, {}, {}, {}, {}
  -- What tasks of this call wait for; those accepted so far, and how many of `waits` were noted.
  found.asked, found.waiting_here, found.waits_noted = {}, {}, 0
  local first = read_after_options(found, options, at, ids)
  -- The age of a step counts from the time in its id. If the clock was wrong, it waits on.
  if math.abs(now - (tonumber(queue.here) or 0)) > STEP_CLOCK_MS then
    found.is_step = {}
  end
  local flow, here, refs = flow_of(queue.meta), {}, {}
  found.flow = flow
  for _, one in ipairs(found.after) do
    if not one.state then
      here[#here + 1], refs[#refs + 1] = one, one.ref
    end
  end
  for i, state in ipairs(states_of_refs(flow, refs, now)) do
    here[i].state = state
  end
  local open = {}
  for _, one in ipairs(found.after) do
    -- A task that takes the result of a success gets it by an effect.
    if one.state ~= 'met' or one.mark == TAKEN then
      local unmet = found.unmet[one.position]
      if not unmet then
        unmet = {}
        found.unmet[one.position] = unmet
        found.waits[#found.waits + 1] = one.position
      end
      unmet[#unmet + 1] = one
      if one.home == '' then
        open[#open + 1] = one.ref
        found.asked[one.ref] = true
      end
    end
  end
  load(flow.ties, flow.ties_key, open)
  read_waits(flow)
  return first
end

-- The accepted tasks with prerequisites that are not met wait.
local function wait_for_prerequisites(found, ids, now)
  for _, position in ipairs(found.waits) do
    if found.apart[position] ~= 'taken' then
      local give_up = found.give_up[position]
      found.flow.is_step[ids[position]] = found.is_step[position]
      begin_wait(found.flow, ids[position], found.unmet[position], found.due_of[position],
        found.has_lane[position], give_up and now + give_up, now)
      found.apart[position], found.flow.has_waits = 'blocked', true
    end
  end
end
