import assert from "node:assert/strict";
import { test } from "node:test";
import { points } from "../../src/pages/overview/Spark";

const xs = (values: number[]) =>
  points(values)
    .split(" ")
    .map((point) => Number(point.split(",")[0]));
const ys = (values: number[]) =>
  points(values)
    .split(" ")
    .map((point) => Number(point.split(",")[1]));

test("a line of a few reads stays at the right, and a long one fills the width", () => {
  assert.deepEqual(xs([0, 4]), [115, 120]);
  const long = xs(Array.from({ length: 121 }, () => 1));
  assert.deepEqual([long[0], long[1], long.at(-1)], [0, 1, 120]);
});

test("zeros are a flat line at the bottom", () => {
  assert.deepEqual(ys([0, 0, 0]), [23, 23, 23]);
});
