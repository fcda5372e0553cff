// What ended in a queue, day by day.

import { useState } from "preact/hooks";
import { path, query } from "../../api/client";
import { usePages } from "../../api/pages";
import type { HistoryRow, QueueDetail } from "../../api/types";
import { current } from "../../state/time";
import { clock, bytes, duration } from "../../text/format";
import { Clock } from "../../ui/Ago";
import { Empty, Problem, Waiting } from "../../ui/Await";
import { More } from "../../ui/More";
import { StateTag } from "../../ui/StateTag";
import { type Column, Table } from "../../ui/Table";
import { TaskLink } from "../../ui/TaskLink";
import { Tabs } from "../../ui/Tabs";
import { Text } from "../../ui/Text";

const COLUMNS: Column<HistoryRow>[] = [
  { name: "id", head: "Id", cell: (row) => <TaskLink id={row.id} /> },
  { name: "task", head: "Task", cell: (row) => <Text value={row.task} max={120} /> },
  { name: "state", head: "State", bare: true, cell: (row) => <StateTag state={row.state} /> },
  {
    name: "ended",
    head: "Ended",
    kind: "number",
    cell: (row) => <Clock at={row.ended_ms} text={clock(row.ended_ms)} />,
  },
  { name: "attempt", head: "Attempt", kind: "number", cell: (row) => row.attempt },
  { name: "took", head: "Took", kind: "number", cell: (row) => duration(row.took_ms) },
  {
    name: "worker",
    head: "Worker",
    wide: true,
    cell: (row) => <Text value={row.worker} class="mono" />,
  },
  {
    name: "error",
    head: "Error",
    wide: true,
    grow: true,
    isEmpty: (row) => !row.error,
    cell: (row) => <Text value={row.error} />,
  },
];

type Kind = "success" | "dead";
const KINDS: { value: Kind; text: string }[] = [
  { value: "success", text: "Success" },
  { value: "dead", text: "Dead" },
];

/** Days of the history are days of UTC, because Redis has no time zone. */
function today(): string {
  return new Date(current()).toISOString().slice(0, 10);
}

interface Props {
  queue: string;
  kept: QueueDetail["history"];
}

export function History({ queue, kept }: Props) {
  const [day, setDay] = useState(today);
  const [kind, setKind] = useState<Kind>("success");
  const call = `${path("queues", queue, "history")}${query({ day, state: kind, limit: 50 })}`;
  const pages = usePages<HistoryRow>(day === "" ? undefined : call);
  return (
    <section class="panel" aria-label="History">
      <div class="tools">
        <label class="filter">
          <span>Day (UTC)</span>
          <input
            type="date"
            value={day}
            max={today()}
            onInput={(event) => setDay(event.currentTarget.value)}
          />
        </label>
        <Tabs label="Ended as" look="segments" of={KINDS} value={kind} choose={setKind} />
        {kept && (
          <span class="dim num">
            {kept.days} days kept, {bytes(kept.bytes)} of {bytes(kept.budget)}
          </span>
        )}
      </div>
      {pages.error !== undefined && <Problem error={pages.error} again={pages.refresh} />}
      {day === "" && <Empty>Choose a day.</Empty>}
      {day !== "" && pages.rows === undefined && pages.error === undefined && <Waiting />}
      {pages.rows?.length === 0 && (
        <Empty>
          {kept
            ? "Nothing is kept of this day."
            : 'This queue keeps no history. A task keeps one with history = "180d"; so does optimus history keep.'}
        </Empty>
      )}
      {pages.rows !== undefined && pages.rows.length > 0 && (
        <Table
          cards
          label={`History of ${day}`}
          columns={COLUMNS}
          rows={pages.rows}
          id={(row) => `${row.id} ${row.ended_ms}`}
        />
      )}
      <More of={pages} noun="tasks" />
    </section>
  );
}
