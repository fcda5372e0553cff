// Rows that come in pages. More pages are added below; the first page alone is kept fresh, because
// rows that move between pages would be shown twice or not at all.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { Page } from "./types";
import { get } from "./client";
import { EVERY_MS, useResource } from "./resource";

export interface Pages<Row> {
  rows: Row[] | undefined;
  total: number | undefined;
  /** How many were looked at for these rows, if the server searches. */
  scanned: number | undefined;
  error: unknown;
  more: (() => Promise<void>) | undefined;
  isLoading: boolean;
  /** Whether more than the first page is shown. Then nothing is updated. */
  isLong: boolean;
  refresh: () => Promise<void>;
}

/** A step of a search ends once it has found so many, or has looked at so many. */
const FOUND = 50;
const LOOKED_AT = 2_000;

interface Rest<Row> {
  rows: Row[];
  next: string | null;
  scanned: number;
}

function after(call: string, cursor: string): string {
  return `${call}${call.includes("?") ? "&" : "?"}after=${encodeURIComponent(cursor)}`;
}

export function usePages<Row>(call: string | undefined, every = EVERY_MS): Pages<Row> {
  const [rest, setRest] = useState<Rest<Row>>();
  const [isLoading, setLoading] = useState(false);
  const [error, setError] = useState<unknown>();
  const shown = useRef(call);
  shown.current = call;
  const isLong = rest !== undefined;
  const first = useResource<Page<Row>>(call, isLong ? undefined : every);

  const reset = useCallback(() => {
    setRest(undefined);
    setError(undefined);
  }, []);
  useEffect(reset, [call, reset]);

  const next = rest ? rest.next : first.data?.next;
  const more = async () => {
    if (call === undefined || !next) return;
    setLoading(true);
    try {
      let cursor: string | null = next;
      for (let found = 0, looked = 0; cursor && found < FOUND && looked < LOOKED_AT;) {
        const page: Page<Row> = await get<Page<Row>>(after(call, cursor));
        if (shown.current !== call) return;
        setRest((was) => ({
          rows: [...(was?.rows ?? []), ...page.rows],
          next: page.next ?? null,
          scanned: (was?.scanned ?? 0) + (page.scanned ?? 0),
        }));
        found += page.rows.length;
        looked += page.scanned ?? 0;
        // The server has looked at no more than it returned: this is a page and not a search.
        cursor = (page.scanned ?? 0) > page.rows.length ? (page.next ?? null) : null;
      }
      setError(undefined);
    } catch (problem) {
      setError(problem);
    } finally {
      setLoading(false);
    }
  };

  const scanned = first.data?.scanned;
  return {
    rows: first.data && [...first.data.rows, ...(rest?.rows ?? [])],
    total: first.data?.total ?? undefined,
    scanned: scanned === null || scanned === undefined ? undefined : scanned + (rest?.scanned ?? 0),
    error: error ?? first.error,
    more: next ? more : undefined,
    isLoading,
    isLong,
    refresh: async () => {
      reset();
      await first.refresh();
    },
  };
}
