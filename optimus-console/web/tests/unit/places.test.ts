import assert from "node:assert/strict";
import { test } from "node:test";
import type { Overview } from "../../src/api/types";
import { offered } from "../../src/shell/places";

const using = (names: string[]) =>
  ({ features: Object.fromEntries(names.map((name) => [name, true])) }) as Overview;
const pages = (of: ReturnType<typeof offered>) =>
  of.map((group) => group.map((place) => place.page));

test("the menu has the features that are in use", () => {
  assert.deepEqual(pages(offered(using(["lanes", "shards"]), true))[1], ["lanes", "shards"]);
  assert.deepEqual(pages(offered(undefined, true))[1], []);
});

test("a reader of some queues is not offered pages about all of them", () => {
  const [, features, last] = pages(offered(using(["lanes", "shards", "sources"]), false));
  assert.deepEqual(features, ["lanes"]);
  assert.deepEqual(last, ["redis"]);
});
