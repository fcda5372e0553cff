// Keeps the focus over updates: an element that moves in the page loses it.

import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

export function useKeptFocus(within: RefObject<HTMLElement | null>): void {
  const last = useRef<HTMLElement | undefined>(undefined);

  useEffect(() => {
    const region = within.current;
    if (region === null) return;
    const entered = (event: FocusEvent) => {
      last.current = event.target instanceof HTMLElement ? event.target : undefined;
    };
    const left = (event: FocusEvent) => {
      if (event.relatedTarget !== null) last.current = undefined;
    };
    // A click beside everything takes the focus away on purpose.
    const clicked = () => {
      last.current = undefined;
    };
    region.addEventListener("focusin", entered);
    region.addEventListener("focusout", left);
    document.addEventListener("pointerdown", clicked, true);
    return () => {
      region.removeEventListener("focusin", entered);
      region.removeEventListener("focusout", left);
      document.removeEventListener("pointerdown", clicked, true);
    };
  }, [within]);

  useLayoutEffect(() => {
    const lost = document.activeElement === document.body || document.activeElement === null;
    if (lost && last.current?.isConnected) last.current.focus({ preventScroll: true });
  });
}
