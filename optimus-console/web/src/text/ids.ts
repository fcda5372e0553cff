// Ids of tasks, `queue/uuid`.

/** Returns the queue and the uuid of an id. */
export function split(id: string): [queue: string, uuid: string] {
  const at = id.lastIndexOf("/");
  return at < 0 ? ["", id] : [id.slice(0, at), id.slice(at + 1)];
}

/** Returns the uuid alone, for a table whose queue is known. */
export function shortId(id: string): string {
  return split(id)[1];
}
