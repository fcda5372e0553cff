// What an operation has counted: how many of each task, and some of them.

import type { Operation } from "../api/types";
import { Text } from "../ui/Text";
import { Ago } from "../ui/Ago";
import { type Column, Table } from "../ui/Table";
import type { TaskRow } from "../api/types";
import { shortId } from "../text/ids";
import { whole } from "../text/format";

const COLUMNS: Column<TaskRow>[] = [
  { name: "id", head: "Id", cell: (row) => <Text value={shortId(row.id)} class="mono" /> },
  { name: "task", head: "Task", cell: (row) => <Text value={row.task} /> },
  { name: "since", head: "Since", cell: (row) => <Ago at={row.at_ms} />, kind: "number" },
  {
    name: "error",
    head: "Last error",
    grow: true,
    cell: (row) => <Text value={row.error?.message} max={160} />,
  },
];

interface Props {
  operation: Operation;
  /** Whether the tasks are hidden until the reader asks for them. */
  isClosed?: boolean;
}

export function Samples({ operation, isClosed = false }: Props) {
  const { samples, by_task, matched } = operation;
  if (matched === 0) return null;
  return (
    <>
      <ul class="chips" aria-label="Tasks by name">
        {by_task.slice(0, 12).map((entry) => (
          <li key={entry.task} class="chip">
            <Text value={entry.task} max={80} /> <b class="num">{whole(entry.count)}</b>
          </li>
        ))}
      </ul>
      {samples.length > 0 && (
        <details class="samples" open={!isClosed}>
          <summary>{samples.length} of them</summary>
          <Table label="Samples" columns={COLUMNS} rows={samples} id={(row) => row.id} />
        </details>
      )}
    </>
  );
}
