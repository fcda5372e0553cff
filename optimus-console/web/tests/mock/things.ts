// The answers about lanes, limits, schedules, groups, shards, sources and dispensers.

import type { Fact } from "../../src/api/types";
import { uuid } from "./numbers";

const PAUSED = "paused by ann (warehouse moves, OPS-412)";
const BLOCKED = "blocked by dead tasks: requeue or delete them";

const rfc = (at: number) => new Date(at).toISOString().replace(/\.\d+/, "");

const fact = (name: string, value: string | number, kind: Fact["kind"] = "text"): Fact => ({
  name,
  value: String(value),
  kind,
});

const at = (name: string, time: number) => fact(name, rfc(time), "instant");
const tasks = (name: string, ...of: number[]) =>
  fact(name, of.map((index) => `mail/${uuid(index)}`).join(" "), "tasks");

interface Thing {
  queue: string | null;
  name: string;
  title: string;
  state: string;
  facts: Fact[];
  acts: string[];
}

function thing(queue: string | null, title: string, state: string, facts: Fact[]): Thing {
  return { queue, name: title, title, state, facts, acts: [] };
}

const withPause = (one: Thing, ...more: string[]): Thing => ({
  ...one,
  acts: [one.state === PAUSED ? "resume" : "pause", ...more],
});

function lanes(now: number): Thing[] {
  return ["acme", "globex", "initech", "umbrella", "hooli"].map((tenant, index) =>
    withPause(
      thing(
        ["mail", "billing"][index % 2] ?? "",
        `tenant-${tenant}`,
        index === 3 ? PAUSED : index === 1 ? BLOCKED : "open",
        [
          fact("waiting", 12 * index + 1),
          at("since", now - 190_000 * (index + 1)),
          ...(index === 3 ? [] : [tasks("holders", index + 90)]),
          ...(index === 1 ? [tasks("dead", index + 90)] : []),
        ],
      ),
    ),
  );
}

function schedules(now: number): Thing[] {
  const titles = ["nightly report", "hourly sync", "cleanup", "digest", "rotate keys"];
  return titles.map((title, index) => {
    const late = "overdue by 3 min: no worker serves the queue";
    const state = index === 3 ? PAUSED : index === 2 ? late : "active";
    const row = thing(["mail", "billing"][index % 2] ?? "", title, state, [
      fact("pace", "0 3 * * * Europe/Berlin"),
      fact("task", title.replace(" ", "_")),
      at("next", now + (index === 2 ? -190_000 : 15_150_000)),
      at("last", now - 71_250_000),
      tasks("last task", index + 90),
    ]);
    // One that nobody ticks can be removed.
    const acts = index === 2 ? ["run_now", "remove"] : ["run_now"];
    return { ...withPause(row, ...acts), name: `schedules-${index}` };
  });
}

function groups(now: number): Thing[] {
  return [0, 1, 2].map((index) =>
    thing("mail", `mail/${uuid(index + 70)}`, `${index} of 2 members have ended`, [
      fact("members", 2),
      fact("ended", index),
      fact("failed", 0),
      fact("to requeue", 0),
      at("kept until", now + 600_000_000),
    ]),
  );
}

/** A limit of the code, and one that an operator has set. */
function limits(now: number): Thing[] {
  const stripe = thing("mail", "limit stripe", "open", [
    ...[fact("rate", "100/s"), fact("burst", 10), fact("max_working", 8)],
    ...[fact("working", 3), fact("waiting", 0), fact("tokens", 7)],
    fact("from", "operator"),
    fact("set by", "ann (bank asked, OPS-77)"),
    at("set at", now - 7_200_000),
  ]);
  const charge = thing("billing", "task charge_card", PAUSED, [
    ...[fact("max_working", 4), fact("working", 4), fact("waiting", 38)],
    fact("from", "code"),
  ]);
  return [
    { ...stripe, name: "limit:stripe", acts: ["pause", "set", "remove"] },
    { ...charge, name: "task:charge_card", acts: ["resume", "set"] },
  ];
}

function shards(): Thing[] {
  return ["coupons", "ledgers"].map((name, index) =>
    withPause(
      thing(null, name, index === 1 ? PAUSED : "active", [
        ...[fact("shards", 4), fact("held", 4), fact("workers", 2), fact("generation", 3)],
        ...[0, 1, 2, 3].map((shard) =>
          fact(`shard ${shard}`, `node-${(shard % 2) + 1}:412 on node-${(shard % 2) + 1}`),
        ),
      ]),
    ),
  );
}

function sources(): Thing[] {
  const slow = "reads only probes, because its tasks fail";
  return ["open_orders", "unpaid_bills", "old_files"].map((name, index) =>
    withPause(
      thing(null, name, index === 1 ? slow : index === 2 ? PAUSED : "active", [
        ...[fact("slices", 4), fact("workers", 2), fact("rows read", 48_210 * (index + 1))],
        ...[fact("tasks submitted", 48_116 * (index + 1)), fact("pages failed", index)],
        fact("attempts failed", index === 1 ? "71 %" : "0 %"),
        ...(index === 1 ? [fact("slice 2", "relation bills_2 does not exist")] : []),
      ]),
      "run_now",
    ),
  );
}

function dispensers(): Thing[] {
  return ["claims", "photos", "returns"].map((name, index) =>
    thing(null, name, index === 2 ? "is rebuilt" : "active", [
      ...[fact("open", 1_240 - 400 * index), fact("assigned", 57), fact("assignees", 9)],
      fact("first waits", `${312 - 100 * index} s`),
    ]),
  );
}

export function things(kind: string, now: number) {
  const all = { lanes, schedules, groups, limits, shards, sources, dispensers };
  const rows = all[kind as keyof typeof all](now);
  return { rows, next: null };
}
