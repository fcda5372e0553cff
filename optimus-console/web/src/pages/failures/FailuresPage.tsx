// The dead tasks in groups of the same failure. A group is retried or deleted by an operation.

import { useState } from "preact/hooks";
import { useResource } from "../../api/resource";
import { may } from "../../api/session";
import type { FailureRow, Failures } from "../../api/types";
import { ACTS, type TaskAct } from "../../acts/names";
import { Bulk } from "../../acts/Bulk";
import { queueHref } from "../../state/hash";
import { refine, route } from "../../state/route";
import { count, short, whole } from "../../text/format";
import { Ago } from "../../ui/Ago";
import { Await, Empty } from "../../ui/Await";
import { type Column, Table } from "../../ui/Table";
import { QueueLink, TaskLink } from "../../ui/TaskLink";
import { Text } from "../../ui/Text";
import { groupFilter, groupId, isLost } from "./group";

/** Without a fingerprint, a filter would match all dead tasks of the same name. */
const NO_FINGERPRINT =
  "No worker has written this error, so nothing tells these tasks from others of the same name.";

const LOST =
  "The worker that ran the task ended without a report each time: it was killed, ran out of memory, or its machine went away. Look at its exit code. A retry may end workers again.";

/** Without a name, a filter would match the tasks of all names. */
const NO_TASK = "The name of these tasks was not read, so nothing tells them from others.";

/** Returns why a filter can't match just this group. */
function blur(row: FailureRow): { text: string; title: string } | undefined {
  const { fingerprint, task } = row;
  if (isLost(row)) return undefined;
  if (fingerprint === null)
    return { text: "no worker has written this error", title: NO_FINGERPRINT };
  return task === null ? { text: "their name was not read", title: NO_TASK } : undefined;
}

type Ask = (act: TaskAct, row: FailureRow) => void;

function Acts({ row, ask }: { row: FailureRow; ask: Ask }) {
  const allowed = (["retry", "delete"] as const).filter((act) => may(ACTS[act].needs));
  const unclear = blur(row);
  if (unclear !== undefined) {
    return allowed.length === 0 ? null : (
      <span class="dim" title={unclear.title}>
        {unclear.text}
      </span>
    );
  }
  return (
    <span class="row-acts">
      {allowed.map((act) => (
        <button key={act} type="button" class="btn is-small" onClick={() => ask(act, row)}>
          {ACTS[act].verb} {short(row.dead)}…
        </button>
      ))}
    </span>
  );
}

function columns(ask: Ask): Column<FailureRow>[] {
  return [
    {
      name: "failure",
      head: "Failure",
      grow: true,
      cell: (row) => (
        <span class="two-lines">
          <span class="failure">
            <span class="tag is-bad">
              <Text value={row.reason} max={40} />
            </span>
            <Text value={row.outline || row.message} max={240} />
          </span>
          <span class="dim">
            <QueueLink queue={row.queue} /> · {isLost(row) && "tasks such as "}
            <Text value={row.task} max={80} />
            {row.sample !== null && (
              <>
                {" "}
                · sample <TaskLink id={row.sample} />
              </>
            )}
          </span>
          {isLost(row) && <span class="dim failure-note">{LOST}</span>}
        </span>
      ),
    },
    {
      name: "dead",
      head: "Dead",
      kind: "number",
      cell: (row) =>
        row.fingerprint === null ? (
          <span title={isLost(row) ? LOST : NO_FINGERPRINT}>{whole(row.dead)}</span>
        ) : (
          <a href={queueHref(row.queue, { state: "dead", fingerprint: row.fingerprint })}>
            {whole(row.dead)}
          </a>
        ),
    },
    {
      name: "first",
      head: "First",
      kind: "number",
      wide: true,
      cell: (row) => <Ago at={row.first_ms} />,
    },
    {
      name: "last",
      head: "Last",
      kind: "number",
      wide: true,
      cell: (row) => <Ago at={row.last_ms} />,
    },
    { name: "acts", head: "", kind: "acts", cell: (row) => <Acts row={row} ask={ask} /> },
  ];
}

function Covered({ data }: { data: Failures }) {
  return (
    <p class="more num" role="status">
      {count(data.rows.length, "failure")} in {count(data.queues, "queue")}
      {data.rows_left_out > 0 && `, ${whole(data.rows_left_out)} further failures not shown`}
      {data.left_out > 0 && `, ${whole(data.left_out)} further queues not looked at`}
    </p>
  );
}

export function FailuresPage() {
  const only = route.value.query["fingerprint"];
  const filter = only === undefined ? "" : `&fingerprint=${encodeURIComponent(only)}`;
  const failures = useResource<Failures>(`failures?limit=200${filter}`);
  const [asked, setAsked] = useState<{ act: TaskAct; row: FailureRow }>();
  return (
    <>
      <div class="page-head">
        <h1>Failures</h1>
        <p class="dim">Dead tasks, grouped by what went wrong.</p>
      </div>
      {only !== undefined && (
        <p class="page-filter">
          <span class="chip">
            fingerprint <Text value={only} max={40} class="mono" />
          </span>
          <button type="button" class="link" onClick={() => refine({ fingerprint: undefined })}>
            Show all
          </button>
        </p>
      )}
      <Await of={failures}>
        {(data) => {
          if (data.rows.length === 0)
            return (
              <Empty>{only ? "No dead task has this failure." : "None. No task is dead."}</Empty>
            );
          return (
            <div class="panel">
              <Table
                label="Failures"
                columns={columns((act, row) => setAsked({ act, row }))}
                rows={data.rows}
                id={groupId}
              />
              <Covered data={data} />
            </div>
          );
        }}
      </Await>
      {asked && (
        <Bulk
          act={asked.act}
          filter={groupFilter(asked.row)}
          note={isLost(asked.row) ? LOST : undefined}
          close={() => {
            setAsked(undefined);
            void failures.refresh();
          }}
        />
      )}
    </>
  );
}
