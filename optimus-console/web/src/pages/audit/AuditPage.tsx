// Who has done what, newest first.

import { usePages } from "../../api/pages";
import type { AuditRow } from "../../api/types";
import { stamp } from "../../text/format";
import { Clock } from "../../ui/Ago";
import { Empty, Problem, Waiting } from "../../ui/Await";
import { More } from "../../ui/More";
import { type Column, Table } from "../../ui/Table";
import { Text } from "../../ui/Text";

const COLUMNS: Column<AuditRow>[] = [
  {
    name: "at",
    head: "Time",
    cell: (row) => <Clock at={row.at_ms} text={stamp(row.at_ms).slice(0, 19)} />,
  },
  { name: "who", head: "Who", cell: (row) => <Text value={row.who} max={60} /> },
  { name: "act", head: "Act", cell: (row) => <Text value={row.act} max={60} /> },
  { name: "target", head: "Of", cell: (row) => <Text value={row.target} max={120} class="mono" /> },
  {
    name: "reason",
    head: "Reason",
    grow: true,
    isEmpty: (row) => !row.reason,
    cell: (row) => <Text value={row.reason || null} />,
  },
  {
    name: "outcome",
    head: "Outcome",
    cell: (row) =>
      row.outcome === null ? <span class="dim">not known</span> : <Text value={row.outcome} />,
  },
];

export function AuditPage() {
  const pages = usePages<AuditRow>("audit?limit=100");
  return (
    <>
      <div class="page-head">
        <h1>Audit</h1>
        <p class="dim">Each act is written before it happens.</p>
      </div>
      {pages.error !== undefined && <Problem error={pages.error} again={pages.refresh} />}
      {pages.rows === undefined && pages.error === undefined && <Waiting />}
      {pages.rows?.length === 0 && <Empty>Nobody has acted yet.</Empty>}
      {pages.rows !== undefined && pages.rows.length > 0 && (
        <div class="panel">
          <Table cards label="Audit" columns={COLUMNS} rows={pages.rows} id={(row) => row.id} />
          <More of={pages} noun="entries" />
        </div>
      )}
    </>
  );
}
