// Asks for overviews while there is no stream.

import type { Overview } from "./types";
import { held } from "../state/hold";
import { get } from "./client";

/** How often the server reads, and so how often a page asks. */
const EVERY_MS = 5000;

/** Asks until the returned function is called. */
export function poll(take: (next: Overview) => void): () => void {
  let isAsking = false;
  const ask = async () => {
    if (isAsking || held.peek() !== undefined) return;
    isAsking = true;
    const next = await get<Overview>("overview").catch(() => undefined);
    isAsking = false;
    if (next !== undefined) take(next);
  };
  const timer = setInterval(() => void ask(), EVERY_MS);
  return () => clearInterval(timer);
}
