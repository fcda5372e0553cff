// Calls the server. All addresses are relative to <base>, so that the console works at any path.

import { signal } from "@preact/signals";

/** An answer that is not a success. The message is for people. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    /** How the console knows who reads, if the reader is not signed in. */
    readonly auth?: string,
  ) {
    super(message);
  }
}

/** How many answers have said that the reader is not signed in. */
export const refusals = signal(0);

/**
 * Returns the address of a call. Each part is one segment and is percent-encoded. A browser resolves
 * `.` and `..` in an address, also as `%2E`, so the server leaves out a `~` before a name.
 */
export function path(...parts: string[]): string {
  const segment = (part: string) => (/^(~|\.\.?$)/.test(part) ? `~${part}` : part);
  return parts.map((part) => encodeURIComponent(segment(part.toWellFormed()))).join("/");
}

/** Returns `?a=1&b=2` of those values that are not empty. */
export function query(values: Record<string, string | number | null | undefined>): string {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== null && value !== undefined && value !== "") given.set(name, String(value));
  }
  const text = given.toString();
  return text === "" ? "" : `?${text}`;
}

export function address(call: string): string {
  return new URL(`api/v1/${call}`, document.baseURI).href;
}

export async function get<Answer>(call: string, abort?: AbortSignal): Promise<Answer> {
  return (await send(call, { method: "GET", signal: abort ?? null })) as Answer;
}

export async function post<Answer>(call: string, body: object = {}): Promise<Answer> {
  const headers = { "content-type": "application/json" };
  return (await send(call, { method: "POST", headers, body: JSON.stringify(body) })) as Answer;
}

async function send(call: string, init: RequestInit): Promise<unknown> {
  let answer: Response;
  try {
    answer = await fetch(address(call), { ...init, credentials: "same-origin", cache: "no-store" });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new ApiError(0, "unreachable", "The console's server does not answer. Is it running?");
  }
  if (answer.status === 204) return undefined;
  if (answer.ok) return answer.json();
  if (answer.status === 401 && !/^(sign-in|session)$/.test(call)) refusals.value += 1;
  throw await refusal(answer);
}

async function refusal(answer: Response): Promise<ApiError> {
  const fallback = `The server answered with status ${answer.status}.`;
  try {
    const body = (await answer.json()) as { error?: unknown; message?: unknown; auth?: unknown };
    const message = typeof body.message === "string" ? body.message : fallback;
    const auth = typeof body.auth === "string" ? body.auth : undefined;
    return new ApiError(answer.status, String(body.error ?? ""), message, auth);
  } catch {
    return new ApiError(answer.status, "", fallback);
  }
}

/** Returns the words of any error. */
export function words(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
