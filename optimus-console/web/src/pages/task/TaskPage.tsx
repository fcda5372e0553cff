// A task: what it is, what has happened to it, and why it doesn't run.

import { path } from "../../api/client";
import { useResource } from "../../api/resource";
import type { TaskDetail } from "../../api/types";
import { actsOn } from "../../acts/names";
import { TaskActs } from "../../acts/TaskActs";
import { Await } from "../../ui/Await";
import { Copy } from "../../ui/Copy";
import { Icon } from "../../ui/Icon";
import { ProgressCell } from "../../ui/Meter";
import { Panel } from "../../ui/Panel";
import { StateTag } from "../../ui/StateTag";
import { QueueLink } from "../../ui/TaskLink";
import { Text } from "../../ui/Text";
import { Errors } from "./Errors";
import { Explain } from "./Explain";
import { HeaderTable } from "./HeaderTable";
import { Log } from "./Log";
import { PayloadPanel } from "./PayloadPanel";
import { TaskFacts } from "./TaskFacts";
import { Timeline } from "./Timeline";

/** Progress and logs change each second while a task runs. */
const LIVE_MS = 2000;

export function TaskPage({ queue, uuid }: { queue: string; uuid: string }) {
  const task = useResource<TaskDetail>(path("tasks", queue, uuid), LIVE_MS);
  return <Await of={task}>{(data) => <Parts task={data} refresh={task.refresh} />}</Await>;
}

function Parts({ task, refresh }: { task: TaskDetail; refresh: () => Promise<void> }) {
  return (
    <>
      <div class="page-head">
        <h1>
          <span class="crumb">
            <a href="#/queues">Queues</a> / <QueueLink queue={task.queue} /> /
          </span>{" "}
          <Text value={task.task} max={200} />
        </h1>
        <div class="acts">
          <TaskActs ids={[task.id]} acts={actsOn(task.state)} done={() => void refresh()} />
        </div>
      </div>
      <p class="task-line">
        <StateTag state={task.state} />
        <span class="mono">
          <Text value={task.id} />
        </span>
        <Copy text={task.id} label="Copy the id" />
        {task.progress && <ProgressCell progress={task.progress} />}
      </p>
      {task.undecodable !== null && (
        <div class="banner is-problem" role="status">
          <Icon name="warn" />
          <p>
            This task's record can't be read: <Text value={task.undecodable} max={500} />
          </p>
        </div>
      )}
      <Explain lines={task.explain} state={task.state} />
      <div class="columns is-task">
        <div class="stack">
          <PayloadPanel title="Arguments" payload={task.arguments} absent="The task has none." />
          <Errors rows={task.errors} />
          {task.log && (task.log.lines.length > 0 || task.state === "working") && (
            <Log log={task.log} isLive={task.state === "working"} />
          )}
          {(task.result !== null || task.state === "success") && (
            <PayloadPanel title="Result" payload={task.result} absent="No result is kept." />
          )}
        </div>
        <div class="stack">
          <Panel title="Timeline">
            <Timeline rows={task.timeline} />
          </Panel>
          <TaskFacts task={task} />
          <HeaderTable headers={task.headers} />
        </div>
      </div>
    </>
  );
}
