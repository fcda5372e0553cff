-- end_mark: the marks in `waiters`. A plain success looks only at `waiters`. So a script that fills
-- another key at which a success must look sets a mark in `waiters`, the key's name after a `#`. A
-- success that finds the key empty removes the mark.

local function has_end_mark(base, name)
  return redis.call('HEXISTS', base .. 'waiters', '#' .. name) == 1
end

local function set_end_mark(base, name)
  redis.call('HSET', base .. 'waiters', '#' .. name, '1')
end
