// The options and the counts of a task.

import type { ComponentChildren } from "preact";
import type { TaskDetail } from "../../api/types";
import { duration } from "../../text/format";
import { Ago, Since } from "../../ui/Ago";
import { Facts } from "../../ui/Facts";
import { Panel } from "../../ui/Panel";
import { QueueLink } from "../../ui/TaskLink";
import { Text } from "../../ui/Text";

/** Losses have a bound of their own, so an attempt after a loss has no place among the retries. */
function attempts({ attempt, losses, max_retry }: TaskDetail): string {
  if (losses > 0) return `${attempt} (${losses} lost)`;
  return max_retry === null ? String(attempt) : `${attempt} of ${max_retry + 1}`;
}

function facts(task: TaskDetail): [string, ComponentChildren][] {
  const rows: [string, ComponentChildren, unknown?][] = [
    ["Queue", <QueueLink queue={task.queue} />],
    ["Submitted", <Ago at={task.created_ms} />, task.created_ms],
    ["Attempt", attempts(task)],
    ["Runs for", <Since at={task.running_since_ms} />, task.running_since_ms],
    ["Took", duration(task.summary?.took_ms), task.summary?.took_ms],
    ["Worker", <Text value={task.worker} class="mono" />, task.worker ?? task.summary?.worker],
    ["Timeout", duration(task.timeout_ms), task.timeout_ms],
    ["Failures", task.failures, task.failures || null],
    ["Losses", task.losses, task.losses || null],
    ["Misfits", task.misfits, task.misfits || null],
    ["Business id", <Text value={task.biz_id} class="mono" />, task.biz_id],
    ["Lane", <Text value={task.lane} />, task.lane],
    ["Priority", task.priority, task.priority || null],
  ];
  // A row whose third part is given and absent is left out.
  const known = rows.filter((row) => row.length < 3 || (row[2] !== null && row[2] !== undefined));
  return known.map(([name, value]) => [name, value]);
}

export function TaskFacts({ task }: { task: TaskDetail }) {
  const shown = task.worker === null ? { ...task, worker: task.summary?.worker ?? null } : task;
  return (
    <Panel title="Facts" class="is-facts">
      <Facts of={facts(shown)} />
    </Panel>
  );
}
