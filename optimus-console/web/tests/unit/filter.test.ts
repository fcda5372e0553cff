import assert from "node:assert/strict";
import { test } from "node:test";
import type { Counts } from "../../src/api/types";
import {
  filterOf,
  isNarrow,
  mistake,
  opening,
  readAge,
  stateOf,
} from "../../src/pages/queue/filter";

test("an age has a unit, or is in seconds", () => {
  assert.deepEqual(
    ["90s", "5m", "5 min", "2h", "7d", "30", "1.5h"].map(readAge),
    [90_000, 300_000, 300_000, 7_200_000, 604_800_000, 30_000, 5_400_000],
  );
  for (const wrong of ["", "soon", "-5m", "5w", "9".repeat(40)])
    assert.equal(readAge(wrong), undefined);
});

test("a filter is what the address of the page says", () => {
  const filter = filterOf("mail", "dead", { task: "welcome", age: "5m" });
  assert.deepEqual(
    [filter.queue, filter.state, filter.task, filter.older_ms],
    ["mail", "dead", "welcome", 300_000],
  );
  assert.ok(isNarrow(filter));
  assert.ok(!isNarrow(filterOf("mail", "dead", {})));
  assert.equal(stateOf("nonsense", "retry"), "retry");
});

test("a queue opens with what runs, or else with the first state that has tasks", () => {
  const none = { ready: 0, working: 0, delayed: 0, retry: 0, blocked: 0, dead: 0, cancelled: 0 };
  const opens = (some: Partial<typeof none>) => opening({ ...none, ...some } as Counts);
  assert.equal(opens({ ready: 9, working: 1, dead: 2 }), "working");
  assert.equal(opens({ ready: 9, dead: 2 }), "ready");
  assert.equal(opens({ retry: 1, dead: 2 }), "retry");
  assert.equal(opens({}), "ready");
});

test("a filter that can't be read is told, and an empty field is none", () => {
  assert.match(mistake({ age: "1w" }) ?? "", /an age/);
  assert.match(mistake({ header: "tenant" }) ?? "", /a header/);
  const right: Record<string, string>[] = [
    {},
    { age: " " },
    { age: "5m", header: "tenant=eu" },
    { text: "1w" },
  ];
  assert.deepEqual([...new Set(right.map(mistake))], [undefined]);
});
