// The operations over many tasks: what each does, how far it is, who started it and why.

import { operations as streamed } from "../../api/events";
import { path, post } from "../../api/client";
import { useResource } from "../../api/resource";
import { may } from "../../api/session";
import type { Operation } from "../../api/types";
import { ConfirmCounted, isLate } from "../../acts/ConfirmCounted";
import { ACTS, actOf, filterWords } from "../../acts/names";
import { Progress } from "../../acts/Progress";
import { Samples } from "../../acts/Samples";
import { Undo } from "../../acts/Undo";
import { attempt } from "../../state/notes";
import { now } from "../../state/time";
import { Ago } from "../../ui/Ago";
import { Await, Empty } from "../../ui/Await";
import { Icon } from "../../ui/Icon";
import { Text } from "../../ui/Text";
import { newest } from "../overview/RunningOperations";

const EVERY_MS = 2000;
const CAN_STOP = ["counting", "counted", "running"];

function Cancel({ operation, done }: { operation: Operation; done: () => Promise<void> }) {
  const needs = ACTS[actOf(operation.act)].needs;
  if (!CAN_STOP.includes(operation.state) || !may("operate") || !may(needs)) return null;
  const cancel = async () => {
    await post(`${path("operations", operation.id)}/cancel`);
    await done();
    return operation.state === "running"
      ? "The operation stops. What it has done stays."
      : "The operation is dropped. Nothing has changed.";
  };
  return (
    <button type="button" class="btn is-small" onClick={() => void attempt(cancel)}>
      <Icon name="stop" />
      Cancel
    </button>
  );
}

function One({ operation, done }: { operation: Operation; done: () => Promise<void> }) {
  return (
    <li class="panel operation-row">
      <div class="operation-head">
        <h2>
          {ACTS[actOf(operation.act)].verb} tasks of <Text value={filterWords(operation.filter)} />
        </h2>
        <span class="row-acts">
          <ConfirmCounted operation={operation} />
          <Cancel operation={operation} done={done} />
          <Undo operation={operation} />
        </span>
      </div>
      <Progress operation={operation} />
      <p class="dim operation-who">
        {operation.state === "counted" && "Counted by "}
        <Text value={operation.who ?? "somebody"} max={60} />, <Ago at={operation.created_ms} />
        {operation.reason && (
          <>
            : <Text value={operation.reason} max={300} />
          </>
        )}
      </p>
      {isLate(operation, now.value) && (
        <p>It was counted more than a day ago and can’t be confirmed any more. Count again.</p>
      )}
      {operation.state === "counted" && <Samples operation={operation} isClosed />}
    </li>
  );
}

export function OperationsPage() {
  const all = useResource<{ rows: Operation[] }>("operations", EVERY_MS);
  return (
    <>
      <div class="page-head">
        <h1>Operations</h1>
        <p class="dim">Acts over many tasks: counted, confirmed, paced.</p>
      </div>
      <Await of={all}>
        {({ rows }) =>
          rows.length === 0 ? (
            <Empty>
              No operation yet. Filter the tasks of a queue and choose “Retry all”, or retry a group
              on the page of failures. Those that the command line counts are here, too.
            </Empty>
          ) : (
            <ul class="stack">
              {newest(rows, streamed.value).map((row) => (
                <One key={row.id} operation={row} done={all.refresh} />
              ))}
            </ul>
          )
        }
      </Await>
    </>
  );
}
