// Keeps an answer of the server fresh while it is shown.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { get } from "./client";
import { held } from "../state/hold";

export interface Resource<Answer> {
  /** The last answer. It stays while the next one is awaited, and if that one fails. */
  data: Answer | undefined;
  /** When the last answer came, on the page's own clock. */
  at: number;
  error: unknown;
  /** Asks again at once. */
  refresh: () => Promise<void>;
}

/** How often a page asks again, in milliseconds. */
export const EVERY_MS = 5000;

interface Answered<Answer> {
  call: string;
  data?: Answer;
  at?: number;
  error?: unknown;
}

/**
 * Asks for an answer now and after each interval, except while updates are held back. Without a
 * call it does nothing.
 */
export function useResource<Answer>(
  call: string | undefined,
  every: number | undefined = EVERY_MS,
): Resource<Answer> {
  const [answer, setAnswer] = useState<Answered<Answer>>();
  const open = useRef<AbortController | undefined>(undefined);

  const ask = useCallback(
    async (isTick: boolean) => {
      open.current?.abort();
      if (call === undefined) return;
      const own = new AbortController();
      open.current = own;
      // The reader may have begun to select or to decide meanwhile. Then no row may move.
      const isUnwanted = () => own.signal.aborted || (isTick && held.peek() !== undefined);
      try {
        const data = await get<Answer>(call, own.signal);
        if (!isUnwanted()) setAnswer({ call, data, at: performance.now() });
      } catch (error) {
        if (isUnwanted()) return;
        setAnswer((last) => ({ ...(last?.call === call ? last : { call }), error }));
      } finally {
        if (open.current === own) open.current = undefined;
      }
    },
    [call],
  );
  const refresh = useCallback(() => ask(false), [ask]);

  useEffect(() => {
    void refresh();
    return () => open.current?.abort();
  }, [refresh]);

  useEffect(() => {
    if (every === undefined) return;
    // A slow answer is not asked for twice.
    const tick = () => {
      if (held.peek() === undefined && open.current === undefined) void ask(true);
    };
    const timer = setInterval(tick, every);
    // What was held back comes at once when the hold ends.
    let was = held.peek();
    const stop = held.subscribe((is) => {
      if (was !== undefined && is === undefined) tick();
      was = is;
    });
    return () => {
      clearInterval(timer);
      stop();
    };
  }, [ask, every]);

  const current = answer?.call === call ? answer : undefined;
  return { data: current?.data, at: current?.at ?? 0, error: current?.error, refresh };
}
