import assert from "node:assert/strict";
import { test } from "node:test";
import { path } from "../../src/api/client";

test("an address keeps each name as one segment, which no browser resolves", () => {
  const base = "http://127.0.0.1/a/b/";
  for (const name of ["mail", ".", "..", "...", "~", "~..", "%2e%2e", "a/b", "?", "#", "\ud800"]) {
    const { pathname } = new URL(`api/v1/${path("queues", name, "tasks")}`, base);
    const segments = pathname.split("/").slice(3);
    assert.deepEqual([segments.length, segments[2], segments[4]], [5, "queues", "tasks"], name);
    const read = decodeURIComponent(segments[3] ?? "").replace(/^~/, "");
    assert.equal(read, name.toWellFormed());
  }
});
