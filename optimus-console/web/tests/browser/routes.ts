// The pages of a console, found by asking it, so that the same walk works on any server.

import { path } from "../../src/api/client";

const FEATURES = ["lanes", "limits", "schedules", "groups", "shards", "sources", "dispensers"];

export interface Route {
  name: string;
  href: string;
}

interface Row {
  id: string;
  queue: string;
  counts: Record<string, number>;
}

type Get = <Answer>(call: string) => Promise<Answer>;

function getter(url: string, headers: Record<string, string>): Get {
  return async (call) => {
    const answer = await fetch(new URL(`api/v1/${call}`, url), { headers });
    if (!answer.ok) throw new Error(`${call}: status ${answer.status}`);
    return answer.json() as Promise<never>;
  };
}

const STATES = ["dead", "working", "retry", "delayed", "ready", "cancelled", "blocked"];

function taskHref(id: string): string {
  const at = id.lastIndexOf("/");
  return `#/tasks/${encodeURIComponent(id.slice(0, at))}/${encodeURIComponent(id.slice(at + 1))}`;
}

/** The pages of one queue, and a task of each state that it has. */
async function ofQueue(get: Get, row: Row): Promise<Route[]> {
  const queue = encodeURIComponent(row.queue);
  const routes: Route[] = [
    { name: "queue", href: `#/queues/${queue}` },
    { name: "queue-statistics", href: `#/queues/${queue}?view=statistics` },
    { name: "queue-history", href: `#/queues/${queue}?view=history` },
  ];
  for (const state of STATES.filter((one) => (row.counts[one] ?? 0) > 0)) {
    routes.push({ name: `queue-${state}`, href: `#/queues/${queue}?state=${state}` });
    const page = await get<{ rows: Row[] }>(
      `${path("queues", row.queue, "tasks")}?state=${state}&limit=1`,
    );
    const first = page.rows[0];
    if (first) routes.push({ name: `task-${state}`, href: taskHref(first.id) });
  }
  return routes;
}

export async function routes(url: string, headers: Record<string, string> = {}): Promise<Route[]> {
  const get = getter(url, headers);
  const { rows } = await get<{ rows: Row[] }>("queues?sort=dead&limit=50");
  const sum = (row: Row) => Object.values(row.counts).filter((count) => count > 0).length;
  const fullest = [...rows].sort((a, b) => sum(b) - sum(a))[0];
  const ofDots = rows.filter(({ queue }) => /^\.\.?$/.test(queue));
  const { features } = await get<{ features: Record<string, boolean> }>("overview");
  const plain = ["overview", "queues", "failures", "workers", "operations", "audit", "redis"];
  const named = [...plain, ...FEATURES.filter((name) => features[name])];
  return [
    ...named.map((name) => ({ name, href: `#/${name}` })),
    { name: "search", href: `#/search?q=${encodeURIComponent(fullest?.queue ?? "mail")}` },
    ...(fullest ? await ofQueue(get, fullest) : []),
    ...ofDots.map(({ queue }) => ({ name: `queue-${queue}`, href: `#/queues/${queue}` })),
  ];
}
