// The answers to acts, and what they change.

import type { Filter, Operation } from "../../src/api/types";
import { type Store, taskRow } from "./store";

const DAY_MS = 86_400_000;

type Body = Record<string, unknown>;

function pause(store: Store, name: string, body: Body, act: string, now: number): void {
  const row = store.queues.find((one) => one.queue === name);
  if (row === undefined) return;
  const why = typeof body["reason"] === "string" ? body["reason"] : null;
  row.paused = act === "pause" ? { by: "ann", why, since_ms: now } : null;
}

function start(store: Store, body: Body, now: number): Operation {
  const filter = body["filter"] as Filter;
  const row = store.queues.find((one) => one.queue === filter.queue);
  const matched = row?.counts[(filter.state ?? "dead") as "dead"] ?? 0;
  const samples = Array.from({ length: 20 }, (_, index) =>
    taskRow(filter.queue, "dead", index, now),
  );
  const started: Operation = {
    id: `op${store.operations.length + 1}`,
    act: body["act"] as Operation["act"],
    filter,
    state: "counting",
    who: "ann",
    reason: null,
    matched,
    done: 0,
    asked_to_stop: 0,
    refused: 0,
    gone: 0,
    left: matched,
    rate_s: null,
    created_ms: now,
    updated_ms: now,
    confirm_until_ms: null,
    can_undo: false,
    samples,
    by_task: [
      { task: "welcome", count: Math.ceil(matched / 2) },
      { task: "receipt", count: Math.floor(matched / 2) },
    ],
    problems: [],
    failure: null,
    text: "",
  };
  store.operations.unshift(started);
  return started;
}

/** Advances an operation each time that it is asked for. */
export function advance(store: Store, operation: Operation, now: number): Operation {
  operation.updated_ms = Math.max(now, operation.updated_ms + 1);
  if (operation.state === "counting") {
    operation.state = "counted";
    operation.confirm_until_ms = operation.updated_ms + DAY_MS;
  }
  if (operation.state === "running") {
    const step = Math.min(operation.left, Math.ceil(operation.matched / 3));
    operation.done += step;
    operation.left -= step;
    operation.rate_s = 13_000;
    if (operation.left === 0) {
      operation.state = "done";
      operation.text = `${operation.done} requeued`;
      const row = store.queues.find((one) => one.queue === operation.filter.queue);
      if (row) row.counts.dead = 0;
    }
  }
  return operation;
}

function confirm(operation: Operation, body: Body, now: number): Operation | string {
  if (body["expect"] !== operation.matched) return "The count has changed. Count again.";
  operation.state = "running";
  operation.reason = (body["reason"] as string | undefined) ?? null;
  operation.updated_ms = Math.max(now, operation.updated_ms + 1);
  return operation;
}

/** Returns the answer: nothing, an object, or the message of a refusal. */
export function act(
  store: Store,
  parts: string[],
  body: Body,
  now: number,
): object | string | undefined {
  store.acts.push({ path: parts.join("/"), body });
  const [first = "", second = "", third = ""] = parts;
  if (first === "queues") return (pause(store, second, body, third, now), undefined);
  if (first === "tasks") {
    const ids = body["ids"] as string[];
    for (const id of ids) store.gone.add(id);
    return { answers: ids.map((id) => ({ id, ok: true, text: "requeued" })) };
  }
  if (first === "operations" && second === "") return start(store, body, now);
  const operation = store.operations.find((one) => one.id === second);
  if (first === "operations" && operation) {
    if (third === "confirm") return confirm(operation, body, now);
    if (third === "undo") {
      const filter = { queue: operation.filter.queue ?? "mail", state: "cancelled" };
      return start(store, { act: "requeue", filter }, now);
    }
    operation.state = "cancelled";
    operation.updated_ms = Math.max(now, operation.updated_ms + 1);
    return operation;
  }
  return { text: "The process will follow within seconds." };
}
