-- gate_pass: which tasks are next in the usual case of a queue with limits: none is ranked, none
-- waits for a gate, and every task passes its gates.

-- Returns the ids and what a claim writes about them, nil if a gate refuses one. `entries` keep
-- their content.
local function passing(queue, entries, want, now)
  local ids, from_ready, tried = plain_ids({ unpack(entries) }, want)
  local kept, records = with_records(queue.tasks, ids)
  local gates = gates_of(queue.base, now, queue.is_bare)
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
