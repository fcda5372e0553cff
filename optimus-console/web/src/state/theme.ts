// Light or dark: as the system says, or as the reader chose.

import { effect, signal } from "@preact/signals";

export type Theme = "auto" | "light" | "dark";

const KEY = "optimus.theme";

function stored(): Theme {
  try {
    const found = localStorage.getItem(KEY);
    return found === "light" || found === "dark" ? found : "auto";
  } catch {
    return "auto";
  }
}

export const theme = signal<Theme>(stored());

const system = matchMedia("(prefers-color-scheme: dark)");

/** Changes whenever the colours do, for charts, which are drawn and not styled. */
export const palette = signal("");

function apply(): void {
  const shown = theme.value === "auto" ? (system.matches ? "dark" : "light") : theme.value;
  document.documentElement.dataset["theme"] = shown;
  palette.value = shown;
}

effect(apply);
system.addEventListener("change", apply);

export function choose(next: Theme): void {
  theme.value = next;
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // A browser without storage forgets the choice with the page.
  }
}
