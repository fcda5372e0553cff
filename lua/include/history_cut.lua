-- history_cut: the summaries that leave the last successes go to the history of the queue.

-- Returns the history, nil if the queue keeps none. `cut` is how many of the first summaries leave.
local function history_of_cut(base, text, success, cut, now)
  local history = history_of(base, text, now)
  for _, line in ipairs(history and redis.call('LRANGE', success, '0', whole(cut - 1)) or {}) do
    local ended_at, task = string.match(line, '^%S+ (%d+) (%S+) %d+ %d+ [^\n]+$')
    if ended_at and is_in_history(history, task) then
      add_to_history(history, 'success', tonumber(ended_at), line)
    end
  end
  if history then
    trim_history(history)
  end
  return history
end
