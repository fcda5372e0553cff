import assert from "node:assert/strict";
import { test } from "node:test";
import { inner, queueHref, read, taskHref, write } from "../../src/state/hash";

test("an address holds any name", () => {
  const names = ["mail", "a/b", "100%", "#?&=", "<img src=x>", "漢字", " "];
  for (const name of names) {
    const route = read(queueHref(name, { text: name, state: undefined }));
    assert.deepEqual(route, { parts: ["queues", name], query: { text: name } });
  }
});

test("an address that is not well formed opens something", () => {
  assert.deepEqual(read("#/queues/%E0%A4%A"), { parts: ["queues", "%E0%A4%A"], query: {} });
  assert.deepEqual(read(""), { parts: [], query: {} });
  assert.doesNotThrow(() => write(["queues", "\ud800"]));
});

test("a task's address is made of its queue and its uuid", () => {
  assert.equal(taskHref("mail/0199-a"), "#/tasks/mail/0199-a");
  assert.deepEqual(read(taskHref("a/b/0199-a")).parts, ["tasks", "a/b", "0199-a"]);
});

test("an address of the server is followed only within the page", () => {
  assert.equal(inner("#/queues/mail"), "#/queues/mail");
  for (const other of ["javascript:alert(1)", "https://example.org", "//example.org", "#x", ""]) {
    assert.equal(inner(other), undefined);
  }
});
