-- gate_pass: which tasks are next in the usual case of a queue with limits: none is ranked, none
-- waits for a gate, and every task passes its gates.

-- Returns the ids and what a claim writes about them, nil in any other case. `entries` keep their
-- content.
local function passing(queue, entries, want, now)
  local base = string.sub(queue.meta, 1, -5)
  local waits, loans = base .. 'waits', base .. 'loans'
  local is_bare = redis.call('EXISTS', queue.priority, waits, loans, base .. 'limits',
    base .. 'shut') == 0
  if not is_bare and redis.call('EXISTS', queue.priority, waits, loans) > 0 then
    return nil
  end
  local ids, from_ready, tried = plain_ids({ unpack(entries) }, want)
  local kept, records = with_records(queue.tasks, ids)
  local gates = gates_of(base, now, is_bare)
  for i = 1, #kept do
    local pass = pass_of(gates, records[i])
    if pass then
      if refusal_of(gates, pass) then
        return nil
      end
      take_pass(gates, pass, kept[i])
    end
  end
  read_gates(gates)
  return { ids = kept, from_ready = from_ready, tried = tried, records = records, gates = gates,
    write = write_gates }
end
