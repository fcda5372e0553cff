// What tells a group of failures from the others.

import type { FailureRow } from "../../api/types";

/** Returns an id that no other group has. Groups without a fingerprint differ by their reason. */
export function groupId({ queue, task, fingerprint, reason }: FailureRow): string {
  return JSON.stringify([queue, task, fingerprint ?? { reason }]);
}
