// Reads what an operator writes of a limit, and says it in words.

import type { ThingRow } from "../api/types";

/** What stands in the fields. */
export interface LimitFields {
  rate: string;
  burst: string;
  working: string;
}

/** A limit as the server takes it. */
export interface Limit {
  rate?: string;
  burst?: number;
  max_working?: number;
}

/** A whole rate, which the server also writes. */
const RATE = /^(\d+)\/([smhd])$/;
const UNITS: Record<string, string> = { s: "second", m: "minute", h: "hour", d: "day" };
const MOST = 2 ** 32 - 1;

/** The fields of a limit that there is. */
export function fieldsOf(row: ThingRow | undefined): LimitFields {
  const of = (name: string) => row?.facts.find((fact) => fact.name === name)?.value ?? "";
  const rate = RATE.test(of("rate")) ? of("rate") : "";
  return { rate, burst: rate && of("burst"), working: of("max_working") };
}

function whole(text: string): number | undefined {
  const value = /^\d{1,10}$/.test(text) ? Number(text) : 0;
  return value >= 1 && value <= MOST ? value : undefined;
}

/** Returns the limit, or what is wrong with it. */
export function limitOf(fields: LimitFields): Limit | string {
  const rate = fields.rate.replaceAll(" ", "");
  const [burst, working] = [fields.burst.trim(), fields.working.trim()];
  if (rate === "" && working === "") return "Write a rate, or how many may run at once.";
  if (rate !== "" && !RATE.test(rate)) return "Write a rate such as 100/s, 10/m, 5/h or 3/d.";
  if (rate === "" && burst !== "") return "A burst has no effect without a rate.";
  const limit: Limit = {};
  if (rate !== "") limit.rate = rate;
  for (const [name, text] of [
    ["burst", burst],
    ["max_working", working],
  ] as const) {
    if (text === "") continue;
    const value = whole(text);
    if (value === undefined) return "Write whole numbers of at least 1. To stop all, pause it.";
    limit[name] = value;
  }
  return limit;
}

/** `At most 5 start a minute, 2 at once after a pause. At most 3 run at once.` */
export function limitWords({ rate, burst, max_working }: Limit): string {
  const [, many, unit = ""] = RATE.exec(rate ?? "") ?? [];
  const sentences = [];
  if (many !== undefined) {
    const after = burst === undefined ? "" : `, ${burst} at once after a pause`;
    sentences.push(`At most ${many} start a ${UNITS[unit]}${after}.`);
  }
  if (max_working !== undefined)
    sentences.push(`At most ${max_working} run at once, over all workers.`);
  return sentences.join(" ");
}
