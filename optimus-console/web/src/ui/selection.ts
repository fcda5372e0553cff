// The rows that the reader has selected. Updates are held back while there are any.

import { useEffect, useState } from "preact/hooks";
import { useHold } from "../state/hold";
import type { Selection } from "./Table";

export interface Selected extends Selection {
  ids: string[];
  clear: () => void;
}

/** Starts again whenever `scope` changes, because other rows are shown then. */
export function useSelection(scope: string): Selected {
  const [ids, setIds] = useState<string[]>([]);
  useEffect(() => setIds([]), [scope]);
  useHold(ids.length > 0 ? "rows are selected" : undefined);
  const chosen = new Set(ids);
  return {
    ids,
    has: (id) => chosen.has(id),
    toggle: (id) => setIds(chosen.has(id) ? ids.filter((other) => other !== id) : [...ids, id]),
    all: setIds,
    clear: () => setIds([]),
  };
}
