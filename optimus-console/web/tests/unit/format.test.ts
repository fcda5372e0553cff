import assert from "node:assert/strict";
import { test } from "node:test";
import { ago, bytes, duration, moment, percent, rate, short, whole } from "../../src/text/format";

test("a number is short, and its unit changes before it reaches a thousand", () => {
  const shown = [0, 7, 0.25, 1.5, 999, 1000, 1204, 12_412, 999_499, 999_600, 2_310_442].map(short);
  assert.deepEqual(shown, [
    "0",
    "7",
    "0.25",
    "1.5",
    "999",
    "1k",
    "1.2k",
    "12.4k",
    "999k",
    "1M",
    "2.3M",
  ]);
  assert.equal(short(Number.NaN), "–");
  assert.equal(whole(2_310_442), "2,310,442");
  assert.equal(rate(null), "–");
  assert.equal(rate(310), "310/s");
  const few = [0.004, 0.01, 0.015, 0.0201, 0.0001].map(rate);
  assert.deepEqual(few, ["0.004/s", "0.01/s", "0.015/s", "0.02/s", "0/s"]);
});

test("a duration has at most two units", () => {
  const shown = [
    0, 41, 999.4, 1200, 41_000, 59_940, 60_000, 250_000, 3_600_000, 3_599_999, 266_400_000,
  ].map(duration);
  const expected = [
    "0 ms",
    "41 ms",
    "999 ms",
    "1.2 s",
    "41 s",
    "1 min",
    "1 min",
    "4 min 10 s",
    "1 h",
    "1 h",
    "3 d 2 h",
  ];
  assert.deepEqual(shown, expected);
  assert.deepEqual([null, undefined, Number.POSITIVE_INFINITY, -5].map(duration), [
    "–",
    "–",
    "–",
    "0 ms",
  ]);
});

test("a time is told as the span from now", () => {
  const now = 1_000_000_000_000;
  const shown = [0, 5000, 98_000, 7_300_000, -46_000].map((span) => ago(now - span, now));
  assert.deepEqual(shown, ["now", "5 s ago", "1 min ago", "2 h ago", "in 46 s"]);
  assert.equal(ago(null, now), "–");
});

test("a time is told with its zone, and in UTC", () => {
  const at = Date.UTC(2026, 10, 27, 9, 12, 40, 120);
  const before = process.env["TZ"];
  const told = ["UTC", "Europe/Berlin", "America/St_Johns", "Asia/Kolkata"].map((zone) => {
    process.env["TZ"] = zone;
    return moment(at);
  });
  if (before === undefined) delete process.env["TZ"];
  else process.env["TZ"] = before;
  assert.deepEqual(told, [
    "2026-11-27 09:12:40.120 UTC",
    "2026-11-27 10:12:40.120 UTC+1, which is 2026-11-27 09:12:40.120 UTC",
    "2026-11-27 05:42:40.120 UTC-3:30, which is 2026-11-27 09:12:40.120 UTC",
    "2026-11-27 14:42:40.120 UTC+5:30, which is 2026-11-27 09:12:40.120 UTC",
  ]);
  assert.equal(moment(Number.NaN), "–");
});

test("sizes and parts", () => {
  assert.deepEqual([0, 999, 812_000_000, 4_000_000_000].map(bytes), [
    "0 B",
    "999 B",
    "812 MB",
    "4 GB",
  ]);
  assert.deepEqual([0, 0.001, 0.42, 1, null].map(percent), ["0 %", "0.1 %", "42 %", "100 %", "–"]);
});
