// How long to wait before the next attempt to connect.

const FIRST_MS = 1000;
const MOST_MS = 30_000;

/**
 * Returns the wait after a number of failures in a row: 1 s, 2 s, 4 s and so on up to 30 s, less up
 * to half of it by chance, so that all readers of a restarted server don't return at once.
 */
export function backoff(failures: number, chance: number): number {
  const wait = Math.min(MOST_MS, FIRST_MS * 2 ** Math.min(failures - 1, 10));
  return Math.round(wait * (1 - chance / 2));
}
