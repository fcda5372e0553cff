// Who the reader is, and what the reader may do. The server decides; this only hides what it would
// refuse.

import { computed, signal } from "@preact/signals";
import type { Role, Session } from "./types";
import { get, needsSignIn, post } from "./client";
import { setNow } from "../state/time";

export const session = signal<Session | undefined>(undefined);

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

export async function loadSession(): Promise<void> {
  const found = await get<Session>("session");
  setNow(found.now_ms);
  session.value = found;
  needsSignIn.value = false;
}

export async function signIn(token: string): Promise<void> {
  await post("sign-in", { token });
  await loadSession();
}

export async function signOut(): Promise<void> {
  await post("sign-out");
  session.value = undefined;
  needsSignIn.value = true;
}
