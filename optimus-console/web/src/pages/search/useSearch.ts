// Asks the server for what somebody types, after a short pause.

import { useEffect, useState } from "preact/hooks";
import { get, query } from "../../api/client";
import type { Hits } from "../../api/types";

const PAUSE_MS = 180;

export function useSearch(typed: string): { hits?: Hits | undefined; error?: unknown } {
  const [found, setFound] = useState<{ q: string; hits?: Hits; error?: unknown }>();
  useEffect(() => {
    if (typed === "") return;
    const own = new AbortController();
    const timer = setTimeout(() => {
      get<Hits>(`search${query({ q: typed })}`, own.signal).then(
        (hits) => setFound({ q: typed, hits }),
        (error: unknown) => {
          if (!own.signal.aborted) setFound({ q: typed, error });
        },
      );
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      own.abort();
    };
  }, [typed]);
  // A hit of another text would be opened instead of what the reader has typed.
  return found?.q === typed ? { hits: found.hits, error: found.error } : {};
}
