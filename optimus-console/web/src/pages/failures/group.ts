// What tells a group of failures from the others, and the filter that finds its tasks.

import type { FailureRow, Filter } from "../../api/types";

/** Returns an id that no other group has. Groups without a fingerprint differ by their reason. */
export function groupId({ queue, task, fingerprint, reason }: FailureRow): string {
  return JSON.stringify([queue, task, fingerprint ?? { reason }]);
}

/** Whether the workers of these tasks ended without a report. Such a group has tasks of all names. */
export function isLost({ fingerprint, reason }: FailureRow): boolean {
  return fingerprint === null && reason === "lost";
}

/** Returns what finds the tasks of a group. */
export function groupFilter(row: FailureRow): Filter {
  const { queue, task, fingerprint } = row;
  if (isLost(row)) return { queue, state: "dead", cause: "lost" };
  return { queue, state: "dead", task, fingerprint };
}
