// The columns of tasks: each state shows what matters in it.

import type { State, TaskRow } from "../../api/types";
import { Ago, Since } from "../../ui/Ago";
import { Headers } from "./Headers";
import { ProgressCell } from "../../ui/Meter";
import type { Column } from "../../ui/Table";
import { TaskLink } from "../../ui/TaskLink";
import { Text } from "../../ui/Text";
import { duration } from "../../text/format";

const ID: Column<TaskRow> = { name: "id", head: "Id", cell: (row) => <TaskLink id={row.id} /> };
const TASK: Column<TaskRow> = {
  name: "task",
  head: "Task",
  cell: (row) => <Text value={row.task} max={120} />,
};
const ATTEMPT: Column<TaskRow> = {
  name: "attempt",
  head: "Attempt",
  kind: "number",
  isEmpty: (row) => row.attempt === null || row.attempt === undefined,
  cell: (row) => row.attempt ?? "–",
};
const WORKER: Column<TaskRow> = {
  name: "worker",
  head: "Worker",
  wide: true,
  isEmpty: (row) => !row.worker,
  cell: (row) => <Text value={row.worker} max={60} class="mono" />,
};
const ERROR: Column<TaskRow> = {
  name: "error",
  head: "Last error",
  grow: true,
  isEmpty: (row) => row.error?.message === undefined,
  cell: (row) => <Text value={row.error?.message} max={200} />,
};
const HEADERS: Column<TaskRow> = {
  name: "headers",
  head: "Headers",
  wide: true,
  grow: true,
  isEmpty: (row) => Object.keys(row.headers ?? {}).length === 0,
  cell: (row) => <Headers of={row.headers} />,
};
const TOOK: Column<TaskRow> = {
  name: "took",
  head: "Took",
  kind: "number",
  cell: (row) => duration(row.took_ms),
};

function at(head: string): Column<TaskRow> {
  return { name: "at", head, kind: "number", cell: (row) => <Ago at={row.at_ms} /> };
}

const SINCE: Column<TaskRow> = {
  name: "at",
  head: "Runs for",
  kind: "number",
  cell: (row) => <Since at={row.at_ms} />,
};
const PROGRESS: Column<TaskRow> = {
  name: "progress",
  head: "Progress",
  grow: true,
  isEmpty: (row) => !row.progress,
  cell: (row) => <ProgressCell progress={row.progress} />,
};
const CREATED: Column<TaskRow> = {
  name: "created",
  head: "Submitted",
  kind: "number",
  wide: true,
  cell: (row) => <Ago at={row.created_ms} />,
};

export function columns(state: State): Column<TaskRow>[] {
  switch (state) {
    case "working":
      return [ID, TASK, SINCE, ATTEMPT, PROGRESS, WORKER];
    case "delayed":
      return [ID, TASK, at("Due"), CREATED, HEADERS];
    case "retry":
      return [ID, TASK, at("Next attempt"), ATTEMPT, ERROR];
    case "dead":
      return [ID, TASK, at("Dead since"), ATTEMPT, ERROR, WORKER];
    case "cancelled":
      return [ID, TASK, at("Cancelled"), CREATED, HEADERS];
    case "success":
      return [ID, TASK, at("Ended"), ATTEMPT, TOOK, WORKER];
    default:
      // Nothing else is stored of when a task became ready or blocked.
      return [ID, TASK, { ...CREATED, wide: false }, ATTEMPT, HEADERS];
  }
}
