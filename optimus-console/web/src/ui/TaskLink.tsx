// A link to a task, a queue or a failure.

import { taskHref, queueHref } from "../state/hash";
import { shortId } from "../text/ids";
import { Text } from "./Text";

export function TaskLink({ id, whole }: { id: string; whole?: boolean }) {
  return (
    <a href={taskHref(id)} class="mono">
      <Text value={whole ? id : shortId(id)} />
    </a>
  );
}

export function QueueLink({ queue }: { queue: string }) {
  return (
    <a href={queueHref(queue)}>
      <Text value={queue} />
    </a>
  );
}
