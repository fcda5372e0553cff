// How far an operation is.

import type { Operation } from "../api/types";

/** The part of an operation that is over, up to 1. */
export function part(operation: Operation): number {
  if (operation.state === "done") return 1;
  const { matched, done, asked_to_stop, refused, gone } = operation;
  return matched === 0 ? 0 : (done + asked_to_stop + refused + gone) / matched;
}
