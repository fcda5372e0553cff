// The columns of the table of queues.

import type { QueueRow } from "../../api/types";
import type { Column } from "../../ui/Table";
import { plain } from "../../text/marks";
import { duration, rate, short } from "../../text/format";
import { queueHref } from "../../state/hash";
import { QueueLink } from "../../ui/TaskLink";

type CountName = keyof QueueRow["counts"];

/** What stands for a number that could not be read. */
const UNKNOWN = <span class="dim">–</span>;

/** A count that leads to its tasks. Zero is quiet. */
function counted(row: QueueRow, state: CountName) {
  if (row.problem !== null) return UNKNOWN;
  const value = row.counts[state];
  if (value === 0) return <span class="zero">0</span>;
  return (
    <a class={state === "dead" ? "is-bad" : undefined} href={queueHref(row.queue, { state })}>
      {short(value)}
    </a>
  );
}

function column(name: CountName, head: string, wide = false): Column<QueueRow> {
  return { name, head, kind: "number", wide, cell: (row) => counted(row, name) };
}

function Paused({ row }: { row: QueueRow }) {
  const { paused } = row;
  if (!paused) return null;
  const by = paused.by ? ` by ${paused.by}` : "";
  const why = paused.why ? `: ${paused.why}` : "";
  return (
    <span class="tag is-warn" title={plain(`Paused${by}${why}`).slice(0, 500)}>
      paused
    </span>
  );
}

function Unreadable({ row }: { row: QueueRow }) {
  if (row.problem === null) return null;
  return (
    <span class="tag is-bad" title={plain(row.problem).slice(0, 500)}>
      can't be read
    </span>
  );
}

export const COLUMNS: Column<QueueRow>[] = [
  {
    name: "name",
    head: "Queue",
    grow: true,
    cell: (row) => (
      <>
        <QueueLink queue={row.queue} /> <Paused row={row} /> <Unreadable row={row} />
      </>
    ),
  },
  column("ready", "Ready"),
  { name: "oldest", head: "Oldest", kind: "number", cell: (row) => duration(row.oldest_ms) },
  column("working", "Working", true),
  column("delayed", "Delayed", true),
  column("retry", "Retry", true),
  column("blocked", "Blocked", true),
  column("dead", "Dead"),
  { name: "rate", head: "Rate", kind: "number", wide: true, cell: (row) => rate(row.rate_s) },
  {
    name: "failed",
    head: "Failed, 1 h",
    kind: "number",
    wide: true,
    cell: (row) =>
      row.failed_1h === null ? (
        UNKNOWN
      ) : row.failed_1h > 0 ? (
        <span class="is-bad">{short(row.failed_1h)}</span>
      ) : (
        <span class="zero">0</span>
      ),
  },
  {
    name: "slots",
    head: "Slots",
    kind: "number",
    wide: true,
    cell: (row) => (row.slots === null ? "–" : short(row.slots)),
  },
  {
    name: "drain",
    head: "Drains in",
    kind: "number",
    wide: true,
    cell: (row) => duration(row.drain_ms),
  },
];
