import assert from "node:assert/strict";
import { test } from "node:test";
import { axisWidth } from "../../src/chart/options";
import { idleRows } from "../../src/chart/ranges";

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
