// The one stream of events. It is closed while the page is hidden, so that a server without readers
// asks nothing of Redis.

import { computed, effect, signal } from "@preact/signals";
import type { Operation, Overview, QueueRow } from "./types";
import { address, query } from "./client";
import { backoff } from "./backoff";
import { poll } from "./poll";
import { held, isHidden } from "../state/hold";
import { now, setNow } from "../state/time";
import { loadSession, needsSignIn, session } from "./session";

/** Data older than this is called old. The server sends an overview each 5 s. */
const OLD_AFTER_MS = 20_000;

export const overview = signal<Overview | undefined>(undefined);
/** The newest form of each operation that the stream has told of. */
export const operations = signal<Record<string, Operation>>({});
/** The newest row of the queue that is watched, and when it came, on the page's own clock. */
export const queueRow = signal<{ row: QueueRow; at: number } | undefined>(undefined);

/** The queue whose changes the stream carries. */
export const watched = signal<string | undefined>(undefined);

type Link = { state: "closed" | "opening" | "open" } | { state: "waiting"; until: number };

const link = signal<Link>({ state: "closed" });
const heard = signal(0);

/** What the reader should know of the stream. */
export const liveness = computed<{ kind: "live" | "held" | "old" | "lost"; text: string }>(() => {
  const at = link.value;
  const isWaiting = at.state === "waiting";
  if (!isWaiting && overview.value?.redis.up === false) {
    return { kind: "old", text: "The console can't reach Redis" };
  }
  const why = held.value;
  if (why !== undefined) return { kind: "held", text: `Updates paused: ${why}` };
  if (isWaiting) {
    const seconds = Math.max(0, Math.ceil((at.until - now.value) / 1000));
    return { kind: "lost", text: `Disconnected. Next attempt in ${seconds} s` };
  }
  const age = now.value - heard.value;
  if (heard.value > 0 && age > OLD_AFTER_MS) {
    return { kind: "old", text: `Data is ${Math.round(age / 1000)} s old` };
  }
  return { kind: "live", text: at.state === "open" ? "Live" : "Connecting" };
});

/** Takes an overview, from the stream or from a call. */
export function takeOverview(next: Overview): void {
  // Without Redis, the server repeats what it has read last.
  if (next.redis.up) setNow(next.now_ms);
  heard.value = next.sampled_ms;
  if (held.peek() === undefined || overview.peek() === undefined) overview.value = next;
}

export function takeOperation(next: Operation): void {
  const known = operations.peek()[next.id];
  if (known !== undefined && known.updated_ms > next.updated_ms) return;
  operations.value = { ...operations.peek(), [next.id]: next };
}

function takeQueue(next: QueueRow): void {
  if (held.peek() === undefined) queueRow.value = { row: next, at: performance.now() };
}

let source: EventSource | undefined;
let timer: ReturnType<typeof setTimeout> | undefined;
let failures = 0;
let openedAt: number | undefined;

function close(): void {
  source?.close();
  source = undefined;
  clearTimeout(timer);
}

function listen<Data>(from: EventSource, name: string, take: (data: Data) => void): void {
  from.addEventListener(name, (event) => take(JSON.parse((event as MessageEvent<string>).data)));
}

function connect(): void {
  close();
  link.value = { state: "opening" };
  const from = new EventSource(address(`events${query({ queue: watched.peek() })}`));
  source = from;
  listen(from, "overview", takeOverview);
  listen(from, "operation", takeOperation);
  listen(from, "queue", takeQueue);
  from.onopen = () => {
    failures = 0;
    openedAt = Date.now();
    link.value = { state: "open" };
  };
  from.onerror = retry;
}

/** A server ends streams from time to time. One that was open this long is opened again at once. */
const WHOLE_MS = 10_000;

/**
 * A stream doesn't tell why it failed. A call does: the reader may have to sign in again, or may be
 * allowed other things.
 */
function retry(): void {
  close();
  void loadSession().catch(() => undefined);
  const lasted = openedAt === undefined ? 0 : Date.now() - openedAt;
  openedAt = undefined;
  if (lasted > WHOLE_MS) return connect();
  failures += 1;
  const wait = backoff(failures, Math.random());
  link.value = { state: "waiting", until: now.peek() + wait };
  timer = setTimeout(connect, wait);
}

/** Keeps the stream open while somebody who is signed in sees the page. */
export function follow(): void {
  const wanted = computed(() => {
    const watching = session.value !== undefined && !needsSignIn.value && !isHidden.value;
    return watching ? `on ${watched.value ?? ""}` : undefined;
  });
  effect(() => {
    if (wanted.value === undefined) {
      close();
      link.value = { state: "closed" };
    } else {
      failures = 0;
      connect();
    }
  });
  // While nobody sees the page, no stream ends that would tell of another reader.
  let wasHidden = isHidden.peek();
  isHidden.subscribe((is) => {
    if (wasHidden && !is) void loadSession().catch(() => undefined);
    wasHidden = is;
  });
  // A server has seats for so many streams, and some proxies let none through.
  const isWithout = computed(() => wanted.value !== undefined && link.value.state !== "open");
  effect(() => (isWithout.value ? poll(takeOverview) : undefined));
}
