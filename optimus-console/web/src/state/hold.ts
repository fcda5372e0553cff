// Whether updates are held back. Rows must not move while the reader selects or decides, and nobody
// needs updates of a hidden page.

import { computed, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

const holds = signal<string[]>([]);
const hidden = signal(document.hidden);

document.addEventListener("visibilitychange", () => {
  hidden.value = document.hidden;
});

/** The reason why updates are held back, or nothing. */
export const held = computed<string | undefined>(() =>
  hidden.value ? "the tab is hidden" : holds.value[0],
);

/** Whether nobody sees the page. */
export const isHidden = hidden;

/** Holds updates back until the returned function is called. */
export function hold(why: string): () => void {
  holds.value = [...holds.value, why];
  let over = false;
  return () => {
    if (over) return;
    over = true;
    const rest = [...holds.peek()];
    rest.splice(rest.indexOf(why), 1);
    holds.value = rest;
  };
}

/** Holds updates back as long as a reason is given. */
export function useHold(why: string | undefined): void {
  useEffect(() => (why === undefined ? undefined : hold(why)), [why]);
}
