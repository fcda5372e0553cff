// Who the reader is, and what the reader may do. The server decides; this only hides what it would
// refuse.

import { computed, effect, signal } from "@preact/signals";
import type { Role, Session } from "./types";
import { ApiError, get, post, refusals } from "./client";
import { setNow } from "../state/time";
import { rememberHow } from "./signed";

export const session = signal<Session | undefined>(undefined);

/** Whether the reader must sign in. */
export const needsSignIn = signal(false);

const RANK: Record<Role, number> = { viewer: 0, operator: 1, admin: 2 };

/** What needs a role. Everything else is for each reader. */
export type Act = "operate" | "delete";

const NEEDS: Record<Act, Role> = { operate: "operator", delete: "admin" };

const rank = computed(() => (session.value ? (RANK[session.value.role] ?? 0) : 0));

/** Returns whether the reader may act. */
export function may(act: Act): boolean {
  return rank.value >= RANK[NEEDS[act]];
}

/** Whether the reader sees every queue. */
export const seesAll = computed(() => session.value?.queues.includes("*") ?? false);

/** What was read belongs to a reader with these. The role only decides what the pages offer. */
function reader({ identity, queues, payloads, namespace }: Session): string {
  return JSON.stringify([identity, [...queues].sort(), payloads, namespace]);
}

let isOver = false;

/**
 * Opens the page again. Nothing else drops all that was read for one reader before the next one:
 * also answers under way, and what parts of the page keep.
 */
function startAgain(): void {
  isOver = true;
  session.value = undefined;
  location.reload();
}

function take(found: Session): void {
  if (isOver) return;
  const known = session.peek();
  if (known !== undefined && reader(known) !== reader(found)) return startAgain();
  setNow(found.now_ms);
  rememberHow(found.auth);
  session.value = found;
  needsSignIn.value = false;
}

function askToSignIn(): void {
  if (isOver) return;
  if (session.peek() !== undefined) return startAgain();
  needsSignIn.value = true;
}

/** Learns who the reader is now. */
export async function loadSession(): Promise<void> {
  try {
    take(await get<Session>("session"));
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) {
      if (error.auth !== undefined) rememberHow(error.auth);
      askToSignIn();
    }
    throw error;
  }
}

// Something in between can refuse one call of a reader who is signed in, so the session decides.
effect(() => {
  if (refusals.value > 0) void loadSession().catch(() => undefined);
});

export async function signIn(token: string): Promise<void> {
  await post("sign-in", { token });
  await loadSession();
}

export async function signOut(): Promise<void> {
  await post("sign-out");
  startAgain();
}
