// Reads and writes `#/queues/mail?state=dead`.

export interface Route {
  /** The decoded segments; the first is the name of the page. */
  parts: string[];
  query: Record<string, string>;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function read(hash: string): Route {
  const [path = "", search = ""] = split(hash.replace(/^#/, ""));
  const parts = path
    .split("/")
    .filter((part) => part !== "")
    .map(decoded);
  return { parts, query: Object.fromEntries(new URLSearchParams(search)) };
}

function split(text: string): [string, string] {
  const at = text.indexOf("?");
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

export function write(parts: string[], query: Record<string, string | undefined> = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  const search = new URLSearchParams(given as [string, string][]).toString();
  return `#/${parts.map((part) => encodeURIComponent(part.toWellFormed())).join("/")}${search === "" ? "" : `?${search}`}`;
}

/** The page of a task, from `queue/uuid`. A queue's name has no slash. */
export function taskHref(id: string): string {
  const at = id.lastIndexOf("/");
  return write(["tasks", id.slice(0, at), id.slice(at + 1)]);
}

export function queueHref(queue: string, query: Record<string, string | undefined> = {}): string {
  return write(["queues", queue], query);
}

/** Returns an address of the server if it stays on this page, else nothing. */
export function inner(href: string): string | undefined {
  return href.startsWith("#/") ? href : undefined;
}
