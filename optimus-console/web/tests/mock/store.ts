// What the mock server has: queues, tasks, processes, operations, and what acts do to them.

import type { Counts, Operation, QueueRow, State, TaskRow } from "../../src/api/types";
import { dice, uuid } from "./numbers";

const NAMES = [
  "mail",
  "billing",
  "thumbnails",
  "search-index",
  "webhooks",
  "exports",
  "reports",
  "imports",
  "tenant-acme",
  "tenant-globex",
  "tenant-initech",
  "fraud",
  "geocode",
  "push",
  "audit-trail",
];
const TASKS: Record<string, string[]> = {
  mail: ["welcome", "receipt", "password_reset"],
  billing: ["charge_card", "issue_invoice"],
  thumbnails: ["resize", "optimize"],
  webhooks: ["deliver_webhook"],
};
export const ERRORS = [
  "connect to smtp-3.internal:25: timed out after 10 s",
  "HTTP 503 from payments: upstream unavailable",
  "deserialize arguments: missing field `tenant` at line 1 column 48",
  "image is 48,000 x 36,000 px, the most is 16,384",
];

export const tasksOf = (queue: string) => TASKS[queue] ?? [`${queue.replace("tenant-", "")}_sync`];

const emptyCounts = (): Counts => ({
  ready: 0,
  delayed: 0,
  blocked: 0,
  retry: 0,
  working: 0,
  dead: 0,
  cancelled: 0,
});

function queueRow(queue: string, index: number, now: number): QueueRow {
  const roll = dice(index + 7);
  const counts = emptyCounts();
  counts.ready = index === 0 ? 1204 : Math.floor(roll() ** 3 * 4000);
  counts.working = Math.floor(roll() * 64);
  if (index === 0) counts.working = 64;
  counts.delayed = Math.floor(roll() * 300);
  counts.retry = Math.floor(roll() * 20);
  counts.blocked = index % 4 === 0 ? Math.floor(roll() * 40) : 0;
  counts.dead = index % 3 === 0 ? 17 + Math.floor(roll() * 900) : 0;
  counts.cancelled = Math.floor(roll() * 30);
  // The server does not know the numbers of a queue that Redis refuses to read.
  const isUnread = index === 8;
  if (isUnread) Object.assign(counts, emptyCounts());
  const slots = index === 4 ? 0 : 16 + Math.floor(roll() * 80);
  return {
    queue,
    counts,
    totals: { success: 2_310_442 + index * 9000, dead: 1204, cancelled: 80, retry: 9021 },
    oldest_ms: counts.ready > 0 ? Math.floor(roll() * (index % 5 === 0 ? 900_000 : 9000)) : null,
    paused:
      index === 6 ? { by: "ann", why: "warehouse moves, OPS-412", since_ms: now - 840_000 } : null,
    rate_s: isUnread ? null : Math.round(roll() * 3100) / 10,
    failed_1h: isUnread ? null : index % 3 === 0 ? Math.floor(roll() * 40) : 0,
    slots: isUnread ? null : slots,
    unserved: slots === 0 && counts.ready > 0,
    want_slots: index === 0 ? 96 : slots,
    drain_ms: isUnread ? null : counts.ready > 0 ? Math.floor(roll() * 90_000) : 0,
    problem: isUnread ? "WRONGTYPE Operation against a key holding the wrong kind of value" : null,
  };
}

/** The part of a task that is the same in each state. */
export function taskRow(queue: string, state: State, index: number, now: number): TaskRow {
  const names = tasksOf(queue);
  const failed = state === "dead" || state === "retry";
  const at =
    state === "delayed" || state === "retry"
      ? now + index * 31_000 + 9000
      : now - index * 47_000 - 4000;
  return {
    id: `${queue}/${uuid(index * 31 + queue.length * 1000 + state.length)}`,
    task: names[index % names.length] ?? "task",
    state,
    created_ms: now - 3_600_000 - index * 61_000,
    at_ms: at,
    attempt: failed ? 25 : 1 + (index % 2),
    took_ms: state === "success" ? 41 + index * 13 : null,
    worker:
      state === "ready" || state === "delayed" ? null : `node-${(index % 4) + 1}:41${index % 4}`,
    headers: index % 3 === 0 ? { tenant: "eu-west", trace: "4bf92f35" } : { tenant: "us" },
    error: failed
      ? {
          at_ms: now - index * 47_000 - 4000,
          attempt: 25,
          reason: index % 4 === 2 ? "undecodable" : "error",
          message: ERRORS[index % ERRORS.length] ?? "",
          causes: ["  caused by: connection timed out", "  caused by: os error 110"],
          worker: `node-${(index % 4) + 1}:412`,
          fingerprint: `k3Jx9w${index % ERRORS.length}`,
        }
      : null,
    progress:
      state === "working" && index % 2 === 0 ? { part: 0.42, text: "copied 42 of 100 rows" } : null,
  };
}

export interface Store {
  queues: QueueRow[];
  gone: Set<string>;
  /** Without Redis, the server repeats what it has read last. */
  redisWentAt: number | undefined;
  operations: Operation[];
  audit: {
    id: string;
    at_ms: number;
    who: string;
    act: string;
    target: string;
    reason: string | null;
    outcome: string | null;
  }[];
  acts: { path: string; body: Record<string, unknown> }[];
}

function finished(now: number): Operation {
  return {
    id: "op0",
    act: "requeue",
    filter: { queue: "billing", state: "dead", task: "charge_card" },
    state: "done",
    who: "bo",
    reason: "payments are up again",
    matched: 1204,
    done: 1201,
    asked_to_stop: 0,
    refused: 2,
    gone: 1,
    left: 0,
    rate_s: null,
    created_ms: now - 5_400_000,
    updated_ms: now - 5_300_000,
    confirm_until_ms: null,
    can_undo: false,
    samples: [],
    by_task: [],
    problems: [{ id: "billing/x", error: "another task has its biz id" }],
    failure: null,
    text: "requeue dead tasks of queue billing: done, 1201 of 1204 changed, 2 refused, 1 gone",
  };
}

/** An operation that somebody has counted with the command line. */
export function counted(now: number, age: number): Operation {
  return {
    ...finished(now),
    id: "op9",
    act: "cancel",
    filter: { queue: null, queues: [], states: ["ready", "delayed"], task: "receipt", headers: [] },
    state: "counted",
    who: "cli-bo",
    reason: "",
    matched: 212,
    done: 0,
    refused: 0,
    gone: 0,
    left: 212,
    created_ms: now - age,
    updated_ms: now - age,
    confirm_until_ms: now - age + 86_400_000,
    samples: [0, 1, 2].map((index) => ({
      ...taskRow("mail", "ready", index, now),
      task: "receipt",
    })),
    by_task: [{ task: "receipt", count: 212 }],
    problems: [],
    text: "cancel ready, delayed tasks of all queues: 212 match, not confirmed",
  };
}

export function store(now: number, many: number): Store {
  const names = [...NAMES];
  for (let index = names.length; index < many; index += 1) names.push(`tenant-${index}`);
  return {
    queues: names.slice(0, many).map((name, index) => queueRow(name, index, now)),
    gone: new Set(),
    redisWentAt: undefined,
    operations: [counted(now, 25 * 60_000), finished(now)],
    audit: [
      {
        id: "3-0",
        at_ms: now - 840_000,
        who: "ann",
        act: "pause",
        target: "reports",
        reason: "warehouse moves, OPS-412",
        outcome: "paused",
      },
      {
        id: "2-0",
        at_ms: now - 5_400_000,
        who: "bo",
        act: "requeue",
        target: "billing, state dead, 1,204 tasks",
        reason: "payments are up again",
        outcome: "1,201 requeued, 2 refused, 1 gone",
      },
      {
        id: "1-0",
        at_ms: now - 9_000_000,
        who: "bo",
        act: "cancel",
        target: `mail/${uuid(4)}`,
        reason: null,
        outcome: null,
      },
    ],
    acts: [],
  };
}
