// The page that is open, from the part of the address after `#`. The path belongs to the server.

import { signal } from "@preact/signals";
import { read, type Route, write } from "./hash";

export const route = signal<Route>(read(location.hash));

addEventListener("hashchange", () => {
  route.value = read(location.hash);
});

/** Opens a page and adds it to the history. */
export function open(href: string): void {
  location.hash = href;
}

/** Opens a page instead of the open one, to which the browser's back button does not lead. */
export function replace(href: string): void {
  history.replaceState(null, "", `${location.pathname}${location.search}${href}`);
  route.value = read(href);
}

/** Changes what the open page shows, and leaves the history as it is. */
export function refine(values: Record<string, string | undefined>): void {
  const next = { ...route.value.query };
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined || value === "") delete next[name];
    else next[name] = value;
  }
  replace(write(route.value.parts, next));
}
