// The processes whose handlers keep them from work. Without one, nothing is shown.

import type { StuckRow } from "../../api/types";
import { write } from "../../state/hash";
import { count, duration } from "../../text/format";
import { Panel } from "../../ui/Panel";
import { type Column, Table } from "../../ui/Table";
import { Text } from "../../ui/Text";
import { BLOCKED, LATE } from "../workers/words";

const COLUMNS: Column<StuckRow>[] = [
  {
    name: "process",
    head: "Process",
    grow: true,
    cell: (row) => (
      <a href={write(["workers"], { process: row.id })}>
        <Text value={`${row.host}:${row.pid}`} max={80} />
      </a>
    ),
  },
  {
    name: "why",
    head: "Why",
    cell: (row) => (
      <span class="reasons">
        {row.blocked_ms !== null && (
          <span class="tag is-bad" title={BLOCKED}>
            blocked for {duration(row.blocked_ms)}
          </span>
        )}
        {row.late > 0 && (
          <span class="tag is-bad" title={LATE}>
            {count(row.late, "late handler")}
          </span>
        )}
      </span>
    ),
  },
  {
    name: "late",
    head: "Late by",
    kind: "number",
    cell: (row) => duration(row.late_ms),
  },
];

export function Stuck({ rows }: { rows: StuckRow[] }) {
  if (rows.length === 0) return null;
  const title = "Processes that need attention";
  return (
    <Panel title={title} aside={<a href="#/workers">All workers</a>}>
      <Table label={title} columns={COLUMNS} rows={rows} id={(row) => row.id} />
    </Panel>
  );
}
