// The numbers of a queue in one line.

import type { QueueRow } from "../../api/types";
import { Facts } from "../../ui/Facts";
import { duration, rate, short, whole } from "../../text/format";

function slots(row: QueueRow): string {
  if (row.slots === null) return "–";
  const want = row.want_slots;
  return want !== null && want > row.slots
    ? `${whole(row.slots)}, wants ${whole(want)}`
    : whole(row.slots);
}

export function QueueFacts({ row }: { row: QueueRow }) {
  return (
    <Facts
      of={[
        ["Oldest ready", duration(row.oldest_ms)],
        ["Drains in", duration(row.drain_ms)],
        ["Rate", rate(row.rate_s)],
        ["Failed, 1 h", row.failed_1h === null ? "–" : whole(row.failed_1h)],
        ["Slots", slots(row)],
        ["Succeeded in all", short(row.totals.success)],
        ["Dead in all", short(row.totals.dead)],
      ]}
    />
  );
}
