// The keys. They do nothing while the reader types or a dialog is open.

import { open } from "./route";
import { write } from "./hash";
import { signal } from "@preact/signals";

/** What is open above the page. */
export const overlay = signal<"" | "palette" | "help">("");

/** The second key after `g`, and the page that it opens. */
export const PLACES: Record<string, [string, string]> = {
  o: ["overview", "Overview"],
  q: ["queues", "Queues"],
  f: ["failures", "Failures"],
  w: ["workers", "Workers"],
  s: ["search", "Search"],
  p: ["operations", "Operations"],
  a: ["audit", "Audit"],
  r: ["redis", "Redis"],
};

const SECOND_KEY_WITHIN_MS = 1500;
let wentAt = 0;

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return target.type !== "checkbox";
  return target.matches("textarea, select") || target.isContentEditable;
}

/** The rows that `j` and `k` walk over. */
function rows(): HTMLElement[] {
  return [...document.querySelectorAll<HTMLElement>("main [data-row]")];
}

function step(by: 1 | -1): void {
  const all = rows();
  if (all.length === 0) return;
  const at = all.findIndex((row) => row.contains(document.activeElement));
  const next = at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by;
  const row = all[Math.max(0, Math.min(all.length - 1, next))];
  row?.focus();
  row?.scrollIntoView({ block: "nearest" });
}

function row(): HTMLElement | undefined {
  return rows().find((candidate) => candidate.contains(document.activeElement));
}

function single(key: string): boolean {
  if (key === "/") overlay.value = "palette";
  else if (key === "?") overlay.value = "help";
  else if (key === "j") step(1);
  else if (key === "k") step(-1);
  else if (key === "x") row()?.querySelector<HTMLInputElement>("input[type=checkbox]")?.click();
  else if (key === "Enter" && document.activeElement === row()) row()?.querySelector("a")?.click();
  else return false;
  return true;
}

function pressed(event: KeyboardEvent): void {
  if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    if (document.querySelector("dialog[open]") === null) overlay.value = "palette";
    return;
  }
  if (event.metaKey || event.ctrlKey || event.altKey || isTyping(event.target)) return;
  if (document.querySelector("dialog[open], .sign-in") !== null) return;
  const place = event.timeStamp - wentAt < SECOND_KEY_WITHIN_MS ? PLACES[event.key] : undefined;
  wentAt = event.key === "g" ? event.timeStamp : 0;
  if (place !== undefined) open(write([place[0]]));
  if (place !== undefined || single(event.key)) event.preventDefault();
}

export function listenToKeys(): void {
  document.addEventListener("keydown", pressed);
}
