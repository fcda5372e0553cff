import assert from "node:assert/strict";
import { test } from "node:test";
import { cause } from "../../src/text/cause";

test("the label of a stored source is taken off, so that the page shows it once", () => {
  const expected = { isSource: true, text: "connection refused" };
  assert.deepEqual(cause("  caused by: connection refused"), expected);
  assert.deepEqual(cause("caused by: connection refused"), expected);
});

test("another line of a message is no source", () => {
  assert.deepEqual(cause("  at src/jobs.rs"), { isSource: false, text: "  at src/jobs.rs" });
});
