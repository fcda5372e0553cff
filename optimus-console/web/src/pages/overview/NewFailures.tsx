// The groups of failures that are new or large.

import type { FailureRow } from "../../api/types";
import { Ago } from "../../ui/Ago";
import { Empty } from "../../ui/Await";
import { Panel } from "../../ui/Panel";
import { type Column, Table } from "../../ui/Table";
import { Text } from "../../ui/Text";
import { short } from "../../text/format";
import { write } from "../../state/hash";
import { groupId } from "../failures/group";

const COLUMNS: Column<FailureRow>[] = [
  {
    name: "what",
    head: "Failure",
    grow: true,
    cell: (row) => (
      <a
        class="two-lines"
        href={write(["failures"], { fingerprint: row.fingerprint ?? undefined })}
      >
        <Text value={row.outline || row.message} max={120} />
        <span class="dim">
          <Text value={row.queue} max={60} /> · <Text value={row.task} max={60} />
        </span>
      </a>
    ),
  },
  { name: "dead", head: "Dead", kind: "number", cell: (row) => short(row.dead) },
  { name: "last", head: "Last", kind: "number", cell: (row) => <Ago at={row.last_ms} /> },
];

export function NewFailures({ rows }: { rows: FailureRow[] }) {
  return (
    <Panel title="Failures" aside={<a href="#/failures">All failures</a>}>
      {rows.length === 0 ? (
        <Empty>None. No task is dead.</Empty>
      ) : (
        <Table label="Failures" columns={COLUMNS} rows={rows} id={groupId} />
      )}
    </Panel>
  );
}
