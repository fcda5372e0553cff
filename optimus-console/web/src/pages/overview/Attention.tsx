// The queues that somebody should look at, and why.

import type { QueueRow } from "../../api/types";
import { Empty } from "../../ui/Await";
import { Panel } from "../../ui/Panel";
import { type Column, Table } from "../../ui/Table";
import { QueueLink } from "../../ui/TaskLink";
import { duration, short } from "../../text/format";
import { reasons } from "./reasons";

const COLUMNS: Column<QueueRow>[] = [
  { name: "queue", head: "Queue", cell: (row) => <QueueLink queue={row.queue} />, grow: true },
  {
    name: "why",
    head: "Why",
    cell: (row) => (
      <span class="reasons">
        {reasons(row).map((reason) => (
          <span key={reason.text} class={`tag is-${reason.tone}`}>
            {reason.text}
          </span>
        ))}
      </span>
    ),
  },
  {
    name: "ready",
    head: "Ready",
    kind: "number",
    cell: (row) => (row.problem === null ? short(row.counts.ready) : "–"),
  },
  {
    name: "oldest",
    head: "Oldest",
    kind: "number",
    cell: (row) => duration(row.oldest_ms),
  },
];

export function Attention({ rows }: { rows: QueueRow[] }) {
  return (
    <Panel title="Queues that need attention" aside={<a href="#/queues">All queues</a>}>
      {rows.length === 0 ? (
        <Empty>None. Each queue is served and keeps up.</Empty>
      ) : (
        <Table
          label="Queues that need attention"
          columns={COLUMNS}
          rows={rows}
          id={(row) => row.queue}
        />
      )}
    </Panel>
  );
}
