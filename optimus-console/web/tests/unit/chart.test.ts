import assert from "node:assert/strict";
import { test } from "node:test";
import { axisWidth } from "../../src/chart/options";
import type { StatsRow } from "../../src/api/types";
import { idleRows, rangeOf, rates, telling } from "../../src/chart/ranges";

test("an axis is as wide as its longest label", () => {
  assert.equal(axisWidth(["1 s", "10 s"]), 46);
  assert.ok(axisWidth(["1 s", "16 min 40 s"]) > 70);
  assert.equal(axisWidth(null), 46);
});

test("charts of a store without a queue end now", () => {
  const now = Date.UTC(2026, 0, 5, 10, 30, 40);
  const rows = idleRows("1h", now);
  assert.equal(rows.length, 60);
  assert.equal(rows.at(-1)?.since_ms, Date.UTC(2026, 0, 5, 10, 30));
  assert.equal(rows[0]?.since_ms, Date.UTC(2026, 0, 5, 9, 31));
});

test("a span of time that is none is an hour", () => {
  assert.deepEqual(["24h", "1w", "toString", undefined].map(rangeOf), ["24h", "1h", "1h", "1h"]);
});

test("a line does not fall at its end: the present minute counts as far as it is over", () => {
  const start = Date.UTC(2026, 0, 5, 10, 30);
  const rows = [6000, 6000, 2000].map(
    (success, index) => ({ since_ms: start + (index - 2) * 60_000, success }) as StatsRow,
  );
  const over = { seconds: 60, until: start + 20_000 };
  assert.deepEqual(rates(rows, "success", over), [100, 100, 100]);
  assert.equal(telling(rows, over.until).length, 3);
  assert.equal(telling(rows, start + 900).length, 2, "less than 5 s tell nothing");
  assert.deepEqual(telling([], start), []);
});
