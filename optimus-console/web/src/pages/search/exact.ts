// Finds the one task whose id was searched for.

import type { Hits } from "../../api/types";
import { shortId } from "../../text/ids";

/** Returns the page of the task if its whole id was typed, with or without the queue. */
export function exact(hits: Hits | undefined, typed: string): string | undefined {
  if (hits === undefined || hits.q !== typed) return undefined;
  const wanted = typed.toLowerCase();
  const found = hits.hits.filter(
    ({ kind, id }) => kind === "task" && (id === typed || shortId(id) === wanted),
  );
  return found.length === 1 ? found[0]?.href : undefined;
}
