// The filter of a queue's tasks, as the address of the page has it.

import type { Counts, Filter, State } from "../../api/types";

export const STATES: State[] = [
  "ready",
  "working",
  "delayed",
  "retry",
  "blocked",
  "dead",
  "cancelled",
  "success",
];

export function stateOf(asked: string | undefined, otherwise: State): State {
  return STATES.find((state) => state === asked) ?? otherwise;
}

/** The state with which a queue opens: what runs, or else the first one that has tasks. */
export function opening(counts: Counts): State {
  const has = (state: State) => state !== "success" && counts[state] > 0;
  return has("working") ? "working" : (STATES.find(has) ?? "ready");
}

const UNIT_MS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Reads `90s`, `5m`, `2 h`, `7d`. A number alone is in seconds. */
export function readAge(text: string): number | undefined {
  const match = /^\s*(\d+(?:\.\d+)?)\s*(ms|s|m|min|h|d)?\s*$/.exec(text);
  if (match === null) return undefined;
  const unit = UNIT_MS[match[2] === "min" ? "m" : (match[2] ?? "s")] ?? 1000;
  const ms = Math.round(Number(match[1]) * unit);
  return Number.isSafeInteger(ms) ? ms : undefined;
}

/** Says what is wrong with a filter, which then would match more tasks than somebody means. */
export function mistake({ age = "", header = "" }: Record<string, string>): string | undefined {
  if (age.trim() !== "" && readAge(age) === undefined) return "Write an age as 90s, 5m, 2h or 7d.";
  if (header !== "" && !header.includes("=")) return "Write a header as name=value.";
  return undefined;
}

export function filterOf(queue: string, state: State, asked: Record<string, string>): Filter {
  return {
    queue,
    state,
    task: asked["task"] || null,
    fingerprint: asked["fingerprint"] || null,
    header: asked["header"] || null,
    older_ms: readAge(asked["age"] ?? "") || null,
    text: asked["text"] || null,
  };
}

/** Whether a filter asks for more than a queue and a state. */
export function isNarrow(filter: Filter): boolean {
  return Boolean(
    filter.task || filter.fingerprint || filter.header || filter.older_ms || filter.text,
  );
}
