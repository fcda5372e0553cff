// Why a queue needs attention, in a few words.

import type { QueueRow } from "../../api/types";
import { short } from "../../text/format";

export interface Reason {
  text: string;
  tone: "bad" | "warn" | "calm";
}

const OLD_MS = 60_000;
const SLOW_MS = 600_000;

export function reasons(row: QueueRow): Reason[] {
  if (row.problem !== null) return [{ text: "can't be read", tone: "bad" }];
  const found: Reason[] = [];
  if (row.unserved) found.push({ text: "not served", tone: "bad" });
  if (row.paused) found.push({ text: "paused", tone: "warn" });
  // What is wrong now comes before what has failed earlier.
  if ((row.oldest_ms ?? 0) > OLD_MS || (row.drain_ms ?? 0) > SLOW_MS) {
    found.push({ text: "behind", tone: "warn" });
  }
  if ((row.failed_1h ?? 0) > 0)
    found.push({ text: `${short(row.failed_1h ?? 0)} failed`, tone: "bad" });
  if (row.counts.dead > 0) found.push({ text: `${short(row.counts.dead)} dead`, tone: "bad" });
  if (row.want_slots !== null && row.slots && row.want_slots > row.slots) {
    found.push({ text: `wants ${short(row.want_slots)} slots`, tone: "calm" });
  }
  return found.slice(0, 2);
}
