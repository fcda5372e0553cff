-- dispenser_span: the span of the clock in which items are finished.

-- Returns what `span` of the dispenser becomes if an item is finished, nil if it stays; and how
-- many of the keys of finished items must expire by the present clock. Those of the latest span
-- count for two more spans after the first item that is finished by a clock that was set back.
local function next_span(head, done, now)
  local span, two_spans = math.floor(now / DONE_SPAN_MS), 2 * DONE_SPAN_MS
  if not done[3] then
    return head.span ~= span and whole(span) or nil, 1
  elseif head.span_until and head.span_until - now <= two_spans then
    return nil, 1
  end
  return whole(head.span) .. ' ' .. whole(now + two_spans), #done
end
