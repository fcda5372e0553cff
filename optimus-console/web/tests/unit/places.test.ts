import assert from "node:assert/strict";
import { test } from "node:test";
import type { Overview } from "../../src/api/types";
import { offered } from "../../src/shell/places";

const using = (names: string[]) =>
  ({ features: Object.fromEntries(names.map((name) => [name, true])) }) as Overview;
const pages = (of: ReturnType<typeof offered>) =>
  of.map((group) => group.map((place) => place.page));

const VIEWER = { seesAll: true, acts: false };

test("the menu has the features that are in use", () => {
  assert.deepEqual(pages(offered(using(["lanes", "shards"]), VIEWER))[1], ["lanes", "shards"]);
  assert.deepEqual(pages(offered(undefined, { seesAll: true, acts: true }))[1], []);
});

test("a reader of some queues is not offered pages about all of them", () => {
  const [, features, last] = pages(
    offered(using(["lanes", "shards", "sources"]), { seesAll: false, acts: false }),
  );
  assert.deepEqual(features, ["lanes"]);
  assert.deepEqual(last, ["redis"]);
});

test("who acts is offered the page of limits before the first one is set", () => {
  assert.deepEqual(pages(offered(using([]), { seesAll: true, acts: true }))[1], ["limits"]);
  assert.deepEqual(pages(offered(using([]), VIEWER))[1], []);
});
