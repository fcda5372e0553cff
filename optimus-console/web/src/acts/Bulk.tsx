// An operation over all tasks that match a filter. It is counted first; nothing changes before the
// reader has seen how many tasks there are and which.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { operations, takeOperation } from "../api/events";
import { get, path, post } from "../api/client";
import type { Filter, Operation } from "../api/types";
import { Dialog } from "../ui/Dialog";
import { Problem, Waiting } from "../ui/Await";
import { Text } from "../ui/Text";
import { whole } from "../text/format";
import { write } from "../state/hash";
import { ACTS, allWords, filterWords, type TaskAct } from "./names";
import { Progress } from "./Progress";
import { Question } from "./Question";

const EVERY_MS = 700;
const isOver = (state: string) => ["done", "cancelled", "failed"].includes(state);

interface Props {
  act: TaskAct;
  filter: Filter;
  /** What to know of these tasks before the act. */
  note?: string | undefined;
  close: () => void;
}

/** Starts the count, and follows the operation until it ends. */
function useOperation(start: () => Promise<Operation>) {
  const [id, setId] = useState<string>();
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    let isLeft = false;
    start().then((started) => {
      takeOperation(started);
      if (isLeft) void abandon(started.id);
      else setId(started.id);
    }, setError);
    return () => {
      isLeft = true;
    };
  }, []);
  const operation = id === undefined ? undefined : operations.value[id];
  const mayChange = operation && !isOver(operation.state) && operation.state !== "counted";
  useEffect(() => {
    if (id === undefined || !mayChange) return;
    const timer = setInterval(() => {
      get<Operation>(path("operations", id)).then(takeOperation, setError);
    }, EVERY_MS);
    return () => clearInterval(timer);
  }, [id, mayChange]);
  return { operation, error };
}

async function abandon(id: string): Promise<void> {
  await post<Operation | undefined>(`${path("operations", id)}/cancel`).catch(() => undefined);
}

export function Bulk({ act, filter, note, close }: Props) {
  const start = () => post<Operation>("operations", { act: ACTS[act].bulk, filter });
  return (
    <Counting start={start} title={allWords(act, true)} close={close}>
      Tasks of <Text value={filterWords(filter)} />
      {note !== undefined && <>. {note}</>}
    </Counting>
  );
}

export function Undoing({ operation, close }: { operation: Operation; close: () => void }) {
  const start = () => post<Operation>(`${path("operations", operation.id)}/undo`, {});
  return (
    <Counting start={start} title="Undo this cancel" close={close}>
      Tasks of <Text value={filterWords(operation.filter)} />, as far as they are still cancelled.
      Those that waited for a time wait for the same time again. The others become ready.
    </Counting>
  );
}

interface CountingProps {
  start: () => Promise<Operation>;
  title: string;
  close: () => void;
  children: ComponentChildren;
}

function Counting({ start, title, close, children }: CountingProps) {
  const { operation, error } = useOperation(start);
  const leave = () => {
    // A counted operation that nobody confirms is not left behind.
    if (operation && (operation.state === "counted" || operation.state === "counting")) {
      void abandon(operation.id);
    }
    close();
  };
  return (
    <Dialog title={title} close={leave} class="is-wide">
      <div class="form">
        <p class="dim">{children}</p>
        {error !== undefined && <Problem error={error} />}
        {operation === undefined && error === undefined && <Waiting />}
        {operation && <Stage operation={operation} leave={leave} />}
      </div>
    </Dialog>
  );
}

function Stage({ operation, leave }: { operation: Operation; leave: () => void }) {
  if (operation.state === "counting") {
    return (
      <p role="status" class="big-count">
        Counting: {whole(operation.matched)} so far
      </p>
    );
  }
  if (operation.state === "counted") {
    return <Question operation={operation} leave={leave} />;
  }
  return (
    <>
      <Progress operation={operation} />
      <footer class="dialog-foot">
        <a class="btn" href={write(["operations"])} onClick={leave}>
          All operations
        </a>
        <button type="button" class="btn is-main" onClick={leave}>
          {isOver(operation.state) ? "Close" : "Leave it running"}
        </button>
      </footer>
    </>
  );
}
