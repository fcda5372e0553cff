// The answers to reads.

import type { Operation, Overview, QueueRow, State, StatsRow, Unit } from "../../src/api/types";
import { dice, uuid } from "./numbers";
import { ERRORS, type Store, taskRow, tasksOf } from "./store";

const FEATURES = [
  "lanes",
  "limits",
  "schedules",
  "groups",
  "shards",
  "sources",
  "dispensers",
] as const;

function failures(store: Store, now: number) {
  const rows = store.queues.filter((row) => row.counts.dead > 0);
  return rows
    .flatMap((row, index) =>
      ERRORS.slice(0, 1 + (index % 3)).map((message, which) => ({
        queue: row.queue,
        task: tasksOf(row.queue)[which % tasksOf(row.queue).length] ?? "task",
        fingerprint: `k3Jx9w${which}`,
        reason: which === 2 ? "undecodable" : "error",
        outline: message.replace(/\d[\d,]*/g, "#"),
        dead: Math.max(1, Math.floor(row.counts.dead / (which + 1.7))),
        first_ms: now - 9_000_000 - index * 600_000,
        last_ms: now - 30_000 * (which + index + 1),
        sample: `${row.queue}/${uuid(index)}`,
        message,
      })),
    )
    .sort((a, b) => b.dead - a.dead);
}

export function overview(store: Store, present: number): Overview {
  const now = store.redisWentAt ?? present;
  const up = store.redisWentAt === undefined;
  const roll = dice(Math.floor(now / 5000) % 1000);
  const sum = (of: (row: QueueRow) => number) =>
    store.queues.reduce((all, row) => all + of(row), 0);
  const count = (name: keyof QueueRow["counts"]) => sum((row) => row.counts[name]);
  const wave = (index: number) => 60_000 + 9000 * Math.sin(index / 9) + 4000 * roll();
  return {
    now_ms: now,
    sampled_ms: now,
    redis: { version: "7.0.15", used_bytes: 812_000_000, max_bytes: 4_000_000_000, up },
    namespace: "shop",
    counts: {
      ready: count("ready"),
      delayed: count("delayed"),
      blocked: count("blocked"),
      retry: count("retry"),
      working: count("working"),
      dead: count("dead"),
      cancelled: count("cancelled"),
    },
    rates: { success_s: 12_412, dead_s: 0.4, retry_s: 13.6 },
    oldest_ms: 812_000,
    slots: { busy: 803, allowed: 896 },
    processes: 14,
    queue_count: store.queues.length,
    attention: store.queues
      .filter((row) => row.paused || row.counts.dead > 0 || row.slots === 0)
      .slice(0, 8),
    stuck: [
      { id: "p3", host: "node-3", pid: 413, blocked_ms: 12_000, late: 0, late_ms: null },
      { id: "p1", host: "node-1", pid: 411, blocked_ms: null, late: 1, late_ms: 4_000 },
    ],
    failures: failures(store, now).slice(0, 7),
    operations: store.operations.filter((one) => ["running", "counting"].includes(one.state)),
    features: Object.fromEntries(FEATURES.map((name) => [name, true])) as Overview["features"],
    series: Array.from({ length: 120 }, (_, index) => ({
      at_ms: now - (120 - index) * 5000,
      success: Math.round(wave(index)),
      retry: Math.round(60 * roll()),
      dead: roll() > 0.9 ? 4 : 0,
    })),
  };
}

const UNIT_MS = { minute: 60_000, hour: 3_600_000, day: 86_400_000 };

function statsRow(index: number, since: number, seconds: number, roll: () => number): StatsRow {
  const swing = 1 + 0.3 * Math.sin(index / 8) + 0.08 * roll();
  const burst = index % 17 === 9 ? 6 : 1;
  const run = 38 * (1 + roll() * 0.2);
  return {
    since_ms: since,
    success: Math.round(310 * seconds * swing),
    retry: Math.round(0.4 * seconds * roll() * burst),
    dead: Math.round(0.05 * seconds * roll() * burst),
    cancelled: 0,
    lost: 0,
    run_p50_ms: run,
    run_p95_ms: run * 6,
    run_p99_ms: run * 30 * (burst > 1 ? 2 : 1),
    wait_p50_ms: 6 + roll() * 3,
    wait_p95_ms: 60 * swing * burst,
    wait_p99_ms: 300 * swing * burst,
  };
}

export function stats(unit: Unit, last: number, now: number, queue?: string) {
  const step = UNIT_MS[unit];
  const end = Math.floor(now / step) * step;
  const roll = dice(last + (queue?.length ?? 0));
  const rows = Array.from({ length: last }, (_, index) =>
    statsRow(index, end - (last - index) * step, step / 1000, roll),
  );
  return { unit, until_ms: end, rows, by_task: byTask(queue ?? "mail"), queues: 15, left_out: 0 };
}

function byTask(queue: string) {
  return tasksOf(queue).map((task, index) => ({
    task,
    success: 120_400 - index * 30_100,
    retry: 310 - index * 99,
    dead: index === 0 ? 12 : 0,
    cancelled: index,
    lost: 0,
    run_p50_ms: 41 + index * 20,
    run_p99_ms: 1200 + index * 300,
    wait_p50_ms: 8,
    wait_p99_ms: 410,
  }));
}

export function queue(store: Store, name: string) {
  const row = store.queues.find((one) => one.queue === name);
  if (row === undefined) return undefined;
  const explain = row.paused
    ? ["The queue is paused. Resume it to start tasks."]
    : [
        "Workers are busy: 64 of 64 slots of this queue run tasks.",
        "At 310/s the ready tasks are done in 41 s.",
      ];
  return {
    ...row,
    explain,
    workers:
      row.slots === 0
        ? []
        : [1, 2, 3].map((n) => ({ id: `p${n}`, host: `node-${n}`, pid: 410 + n, running: 21 })),
    tasks: byTask(name),
    history: { days: 180, bytes: 812_000, budget: 1_000_000 },
  };
}

const PAGE = 50;
const SCANNED = 256;

export function tasks(store: Store, name: string, query: URLSearchParams, now: number) {
  const row = store.queues.find((one) => one.queue === name);
  const state = (query.get("state") ?? "ready") as State;
  const total = state === "success" ? 900 : (row?.counts[state] ?? 0);
  const from = Number(query.get("after") ?? 0);
  const wanted = query.get("text") ?? query.get("task");
  const end = Math.min(total, from + PAGE);
  const all = Array.from({ length: Math.max(0, end - from) }, (_, index) =>
    taskRow(name, state, from + index, now),
  );
  const rows = all
    .filter((one) => !store.gone.has(one.id))
    .filter((one) => !wanted || JSON.stringify(one).includes(wanted));
  return {
    rows,
    next: end < total ? String(end) : null,
    scanned: wanted ? SCANNED : rows.length,
    total,
  };
}

export function history(name: string, query: URLSearchParams, now: number) {
  const state = query.get("state") === "dead" ? "dead" : "success";
  const rows = Array.from({ length: 30 }, (_, index) => ({
    id: `${name}/${uuid(index + 500)}`,
    task: tasksOf(name)[index % tasksOf(name).length],
    state,
    ended_ms: now - index * 61_000,
    attempt: 1 + (index % 3),
    took_ms: 41 + index * 17,
    worker: `node-${(index % 4) + 1}:412`,
    error: state === "dead" ? ERRORS[index % ERRORS.length] : null,
  }));
  return { rows, next: null, scanned: 30 };
}

export function processes(now: number) {
  const rows = [1, 2, 3, 4, 5, 6].map((n) => ({
    id: `p${n}`,
    name: n === 1 ? "mailer" : null,
    host: `node-${n}`,
    pid: 410 + n,
    version: "2.3.1",
    started_ms: now - 260_000_000 - n * 1_000_000,
    // An idle one tells rarely what it does.
    seen_ms: now - (n === 5 ? 48_000 : n === 4 ? 170_000 : 3000),
    lost: n === 5,
    blocked_ms: n === 3 ? 12_000 : null,
    queues: ["mail", "billing", "webhooks"].slice(0, 1 + (n % 3)),
    concurrency: 64,
    slots: n === 6 ? 0 : 64,
    busy: n === 6 ? 2 : 64 - n * 7,
    rss_bytes: 210_000_000 + n * 4_000_000,
    cpu: 0.41,
    running: Array.from({ length: n === 5 ? 0 : 4 }, (_, index) => ({
      id: `mail/${uuid(n * 10 + index)}`,
      task: ["welcome", "receipt", "charge_card", "resize"][index],
      attempt: 1 + (index % 2),
      since_ms: now - 12_000 * (index + 1),
      late_ms: index === 2 ? 4_000 : null,
      progress: index % 2 === 0 ? { part: 0.3 + index * 0.2, text: "copied 42 of 100 rows" } : null,
    })),
  }));
  return { rows, next: null, total: rows.length };
}

export function search(store: Store, q: string) {
  const queues = store.queues.filter((row) => row.queue.includes(q)).slice(0, 5);
  const id = /^(?:mail\/)?([0-9a-f-]{36})$/.exec(q)?.[1];
  const hits = [
    ...(id === undefined
      ? []
      : [{ kind: "task", id: `mail/${id}`, text: "welcome dead", href: `#/tasks/mail/${id}` }]),
    ...queues.map((row) => ({
      kind: "queue",
      id: row.queue,
      text: `${row.counts.ready} ready`,
      href: `#/queues/${row.queue}`,
    })),
    {
      kind: "failure",
      id: "k3Jx9w0",
      text: "connect to smtp-#: timed out",
      href: "#/failures?fingerprint=k3Jx9w0",
    },
    { kind: "biz_id", id: "order-17", text: `mail/${uuid(3)}`, href: `#/tasks/mail/${uuid(3)}` },
    { kind: "process", id: "node-1:411", text: "64 slots", href: "javascript:alert(1)" },
  ];
  const scan = store.queues
    .slice(0, 6)
    .map((row) => ({ queue: row.queue, href: `#/queues/${row.queue}?text=${q}` }));
  const unread = store.queues.filter((row) => row.problem !== null).map((row) => row.queue);
  return { q, hits, more: [], scan, unread, causes_left_out: 0, biz_ids_left_out: 0 };
}

export function redis() {
  return {
    facts: [
      ["Version", "7.0.15"],
      ["Mode", "standalone"],
      ["Memory", "812 MB of 4 GB"],
      ["Fragmentation", "1.04"],
      ["Eviction", "noeviction"],
      ["Append-only file", "everysec"],
      ["Last save", "4 min ago"],
      ["Clients", "148"],
      ["Commands", "41,200/s"],
      ["Clock drift", "2 ms"],
    ].map(([name, value]) => ({ name, value })),
    checks: [
      {
        level: "ok",
        text: "The eviction policy is noeviction: Redis refuses writes before it drops tasks.",
      },
      { level: "ok", text: "The append-only file is on." },
      {
        level: "note",
        text: "appendfsync is everysec: a crash of the machine loses at most one second.",
      },
      { level: "warning", text: "No replica is connected. A lost disk loses all tasks." },
    ],
  };
}

export function failurePage(store: Store, query: URLSearchParams, now: number) {
  const wanted = query.get("fingerprint");
  const found = failures(store, now);
  const rows = wanted === null ? found : found.filter((row) => row.fingerprint === wanted);
  return { rows, rows_left_out: 0, queues: store.queues.length, left_out: 0 };
}

export function operation(store: Store, id: string): Operation | undefined {
  return store.operations.find((one) => one.id === id);
}
