// The spans of time that charts show.

import type { StatsRow, Unit } from "../api/types";
import { clock, day, zone } from "../text/format";

export type RangeName = "1h" | "24h" | "14d" | "180d";

interface Range {
  unit: Unit;
  last: number;
  /** The length of a row in seconds. */
  seconds: number;
}

export const RANGES: Record<RangeName, Range> = {
  "1h": { unit: "minute", last: 60, seconds: 60 },
  "24h": { unit: "hour", last: 24, seconds: 3600 },
  "14d": { unit: "hour", last: 336, seconds: 3600 },
  "180d": { unit: "day", last: 180, seconds: 86_400 },
};

export function rangeOf(name: string | undefined): RangeName {
  return name !== undefined && Object.hasOwn(RANGES, name) ? (name as RangeName) : "1h";
}

/** The words for a row's time, which name the reader's zone. */
export function when(name: RangeName): (at: number) => string {
  // The days of the statistics are days of UTC.
  if (name === "180d") return (at) => `${new Date(at).toISOString().slice(0, 10)} UTC`;
  const date = (at: number) => (name === "1h" ? "" : `${day(at)} `);
  return (at) => `${date(at)}${clock(at).slice(0, 5)} ${zone(at)}`;
}

/** A row that is younger than this, in milliseconds, says nothing yet of a rate. */
const LEAST_MS = 5000;

/** Leaves out the present row while it is very young. */
export function telling(rows: StatsRow[], until: number): StatsRow[] {
  const last = rows.at(-1);
  return last !== undefined && until - last.since_ms < LEAST_MS ? rows.slice(0, -1) : rows;
}

/** The rates of a column of counts, in tasks a second. The present row is not over yet. */
export function rates(
  rows: StatsRow[],
  of: keyof StatsRow,
  { seconds, until }: { seconds: number; until: number },
): number[] {
  return rows.map((row) => {
    const elapsed = Math.min(seconds, (until - row.since_ms) / 1000);
    return Number(row[of] ?? 0) / elapsed;
  });
}

/** The rows of a store without a queue, of which the server knows no time. */
export function idleRows(name: RangeName, until: number): StatsRow[] {
  const { last, seconds } = RANGES[name];
  const length = seconds * 1000;
  const end = Math.floor(until / length);
  return Array.from({ length: last }, (_, index) => ({
    since_ms: (end - last + 1 + index) * length,
    ...{ success: 0, retry: 0, dead: 0, cancelled: 0, lost: 0 },
    ...{ run_p50_ms: null, run_p95_ms: null, run_p99_ms: null },
    ...{ wait_p50_ms: null, wait_p95_ms: null, wait_p99_ms: null },
  }));
}
