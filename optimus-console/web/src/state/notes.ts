// Short notes about what an act has done, at the edge of the page.

import { signal } from "@preact/signals";
import { words } from "../api/client";

export interface Note {
  id: number;
  level: "ok" | "problem";
  text: string;
}

export const notes = signal<Note[]>([]);

const SHOWN_MS = 6000;
const MOST = 4;
let last = 0;

export function dismiss(id: number): void {
  notes.value = notes.value.filter((note) => note.id !== id);
}

export function say(text: string, level: Note["level"] = "ok"): void {
  const id = ++last;
  notes.value = [...notes.value, { id, level, text }].slice(-MOST);
  // A problem stays until it is dismissed.
  if (level === "ok") setTimeout(() => dismiss(id), SHOWN_MS);
}

/** Runs an act and says what came of it. Returns whether it succeeded. */
export async function attempt(act: () => Promise<string | undefined>): Promise<boolean> {
  try {
    const text = await act();
    if (text !== undefined) say(text);
    return true;
  } catch (error) {
    say(words(error), "problem");
    return false;
  }
}
