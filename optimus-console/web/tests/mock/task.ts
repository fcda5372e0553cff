// The answer for one task.

import type { State, TaskDetail } from "../../src/api/types";
import { ERRORS, tasksOf } from "./store";

const ARGUMENTS = `{"order":9007199254740993123,"to":"ann@example.org","card":"[redacted]","lines":[{"sku":"A-17","count":2,"price":12.50},{"sku":"B-4","count":1,"price":7e2}],"note":"leave it at the door","gift":true}`;

function ended(state: State): boolean {
  return ["success", "dead", "cancelled"].includes(state);
}

export function task(queue: string, uuid: string, now: number): TaskDetail {
  const last = uuid.charCodeAt(uuid.length - 1) % 3;
  const state: State = uuid.startsWith("dead")
    ? "dead"
    : uuid.startsWith("019aad81")
      ? "working"
      : last === 0
        ? "retry"
        : "working";
  const error = (attempt: number) => ({
    at_ms: now - 300_000 + attempt * 60_000,
    attempt,
    reason: "error",
    message: ERRORS[0] ?? "",
    causes: ["  caused by: connection timed out", "  caused by: os error 110"],
    worker: "node-3:413",
    fingerprint: "k3Jx9w0",
  });
  return {
    id: `${queue}/${uuid}`,
    queue,
    task: tasksOf(queue)[0] ?? "task",
    state,
    worker: state === "working" ? "node-1:411" : null,
    at_ms: now - 12_000,
    created_ms: now - 320_000,
    attempt: 3,
    max_retry: 24,
    timeout_ms: 60_000,
    failures: 2,
    losses: 0,
    misfits: 0,
    biz_id: "order-17",
    lane: "customer-812",
    priority: null,
    headers: {
      tenant: "eu-west",
      traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    },
    errors: [error(1), error(2)],
    arguments: { text: ARGUMENTS, hidden: false, redacted: true, truncated: false },
    result: null,
    log: {
      lines: Array.from({ length: 14 }, (_, index) => ({
        at_ms: now - 12_000 + index * 800,
        attempt: 3,
        text:
          index % 5 === 4
            ? `WARN slow answer: ${index * 110} ms`
            : `rendered page ${index + 1} of 24`,
      })),
      dropped: 6,
    },
    progress: state === "working" ? { part: 0.58, text: "rendered 14 of 24 pages" } : null,
    running_since_ms: state === "working" ? now - 12_000 : null,
    summary: null,
    undecodable: null,
    timeline: [
      { kind: "submitted", at_ms: now - 320_000, text: "by client 2.3.1" },
      { kind: "started", at_ms: now - 315_000, text: "attempt 1 on node-3:413" },
      { kind: "failed", at_ms: now - 240_000, text: ERRORS[0] ?? "" },
      { kind: "retry", at_ms: now - 194_000, text: "attempt 2 on node-2:412" },
      { kind: "failed", at_ms: now - 180_000, text: ERRORS[0] ?? "" },
      { kind: "started", at_ms: now - 12_000, text: "attempt 3 on node-1:411" },
      ...(state === "dead" ? [{ kind: "ended" as const, at_ms: now - 9_000, text: "dead" }] : []),
    ],
    explain: ended(state)
      ? []
      : state === "retry"
        ? [
            "The last attempt failed. The next one is due in 46 s.",
            "Three processes serve the queue and have free slots.",
          ]
        : ["It runs on node-1:411 since 12 s. Its timeout is in 48 s."],
  };
}
