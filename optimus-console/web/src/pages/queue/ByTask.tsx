// The tasks of the last hour, by their name.

import type { TaskStats } from "../../api/types";
import { Empty } from "../../ui/Await";
import { Panel } from "../../ui/Panel";
import { type Column, Table } from "../../ui/Table";
import { Text } from "../../ui/Text";
import { duration, short } from "../../text/format";

type Count = "success" | "retry" | "dead" | "cancelled" | "lost";
type Span = "run_p50_ms" | "run_p99_ms" | "wait_p50_ms" | "wait_p99_ms";

const counted = (name: Count, head: string): Column<TaskStats> => ({
  name,
  head,
  kind: "number",
  cell: (row) => (row[name] === 0 ? <span class="zero">0</span> : short(row[name])),
});
const timed = (name: Span, head: string): Column<TaskStats> => ({
  name,
  head,
  kind: "number",
  cell: (row) => duration(row[name]),
});

const COLUMNS: Column<TaskStats>[] = [
  { name: "task", head: "Task", grow: true, cell: (row) => <Text value={row.task} /> },
  counted("success", "Success"),
  counted("retry", "Retry"),
  counted("dead", "Dead"),
  { ...counted("cancelled", "Cancelled"), wide: true },
  { ...counted("lost", "Lost"), wide: true },
  timed("run_p50_ms", "Run p50"),
  timed("run_p99_ms", "Run p99"),
  { ...timed("wait_p50_ms", "Wait p50"), wide: true },
  { ...timed("wait_p99_ms", "Wait p99"), wide: true },
];

export function ByTask({ rows }: { rows: TaskStats[] }) {
  return (
    <Panel title="Tasks of the last hour">
      {rows.length === 0 ? (
        <Empty>No attempt ended in the last hour.</Empty>
      ) : (
        <Table
          label="Tasks of the last hour"
          columns={COLUMNS}
          rows={rows}
          id={(row) => row.task}
        />
      )}
    </Panel>
  );
}
