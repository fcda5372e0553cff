// One process and the tasks that it runs.

import type { ProcessRow, RunningTask } from "../../api/types";
import { bytes, duration, percent, whole } from "../../text/format";
import { Ago, Since } from "../../ui/Ago";
import { Empty } from "../../ui/Await";
import { Icon } from "../../ui/Icon";
import { Meter, ProgressCell } from "../../ui/Meter";
import { type Column, Table } from "../../ui/Table";
import { QueueLink, TaskLink } from "../../ui/TaskLink";
import { Text } from "../../ui/Text";
import { ProcessActs } from "./ProcessActs";
import { BLOCKED, LATE } from "./words";

const COLUMNS: Column<RunningTask>[] = [
  { name: "id", head: "Task", cell: (row) => <TaskLink id={row.id} whole /> },
  { name: "task", head: "Name", cell: (row) => <Text value={row.task} max={120} /> },
  { name: "since", head: "Runs for", kind: "number", cell: (row) => <RunsFor row={row} /> },
  {
    name: "attempt",
    head: "Attempt",
    kind: "number",
    wide: true,
    cell: (row) => row.attempt ?? "–",
  },
  {
    name: "progress",
    head: "Progress",
    grow: true,
    cell: (row) => <ProgressCell progress={row.progress} />,
  },
];

/** What a lost process ran runs no more, so nothing is said of how long or how far. */
const LAST: Column<RunningTask>[] = [
  ...COLUMNS.slice(0, 2),
  { name: "began", head: "Began", kind: "number", cell: (row) => <Ago at={row.since_ms} /> },
  ...COLUMNS.slice(3, 4),
];

/** An idle process tells rarely what it does, so only its lease shows whether it is there. */
const LOST =
  "Its lease is over: it has died, or does not reach Redis. Its tasks run again elsewhere.";
const MOST_QUEUES = 8;

interface Props {
  row: ProcessRow;
  isOpen: boolean;
  toggle: () => void;
  done: () => void;
}

export function Process({ row, isOpen, toggle, done }: Props) {
  const allowed = row.slots ?? row.concurrency ?? 0;
  const title = `${row.host}:${row.pid}`;
  return (
    <section class="panel process" aria-label={`Process ${row.pid}`}>
      <header class="process-head">
        <h2>
          <button type="button" class="disclose" aria-expanded={isOpen} onClick={toggle}>
            <Icon name={isOpen ? "open" : "right"} />
            <Text value={title} max={80} class="mono" />
          </button>
        </h2>
        {!row.lost && (
          <span class="process-load">
            <Meter part={allowed > 0 ? row.busy / allowed : 0} label="Slots in use" />
            <span class="num">
              {whole(row.busy)} / {whole(allowed)}
            </span>
          </span>
        )}
        {row.lost && (
          <span class="tag is-bad" title={LOST}>
            lost
          </span>
        )}
        {!row.lost && row.blocked_ms !== null && (
          <span class="tag is-bad" title={BLOCKED}>
            blocked
          </span>
        )}
        {!row.lost && row.slots === 0 && <span class="tag is-warn">quiet</span>}
        {/* Nobody would hear what is asked of a lost process. */}
        <div class="acts">{!row.lost && <ProcessActs row={row} done={done} />}</div>
      </header>
      <ul class="process-facts">
        {row.name !== null && row.name !== "" && (
          <li>
            <Text value={row.name} max={60} />
          </li>
        )}
        <li>
          version <Text value={row.version} max={30} />
        </li>
        <li>
          up <Since at={row.started_ms} />
        </li>
        <li>
          seen <Ago at={row.seen_ms} />
        </li>
        <li class="num">{bytes(row.rss_bytes)}</li>
        <li class="num">CPU {percent(row.cpu)}</li>
        <li class="process-queues">
          {row.queues.slice(0, MOST_QUEUES).map((queue) => (
            <QueueLink key={queue} queue={queue} />
          ))}
          {row.queues.length > MOST_QUEUES && (
            <span class="dim">and {row.queues.length - MOST_QUEUES} more</span>
          )}
        </li>
      </ul>
      {isOpen && <Running row={row} />}
    </section>
  );
}

function Running({ row }: { row: ProcessRow }) {
  if (row.running.length === 0) {
    return (
      <Empty>{row.lost ? `${LOST} It ran no task when it was last heard from.` : "Idle."}</Empty>
    );
  }
  return (
    <>
      {row.lost && <Empty>{LOST} When it was last heard from, it ran:</Empty>}
      <Table
        label={`Tasks of process ${row.pid}`}
        columns={row.lost ? LAST : COLUMNS}
        rows={row.running}
        id={(task) => task.id}
      />
    </>
  );
}

function RunsFor({ row }: { row: RunningTask }) {
  return (
    <>
      <Since at={row.since_ms} />
      {row.late_ms !== null && (
        <span class="tag is-bad" title={LATE}>
          {duration(row.late_ms)} after its timeout
        </span>
      )}
    </>
  );
}
