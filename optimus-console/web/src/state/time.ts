// The time by Redis' clock, which all times of the server have. The clock of the reader's machine
// may be wrong.

import { signal } from "@preact/signals";

let ahead = 0;

/** The present time in milliseconds. It changes once a second. */
export const now = signal(Date.now());

/** Tells the time of an answer. */
export function setNow(at: number): void {
  ahead = at - Date.now();
  now.value = at;
}

/** Returns the present time, to the millisecond. */
export function current(): number {
  return Date.now() + ahead;
}

setInterval(() => {
  if (!document.hidden) now.value = current();
}, 1000);
