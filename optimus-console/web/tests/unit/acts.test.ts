import assert from "node:assert/strict";
import { test } from "node:test";
import { backoff } from "../../src/api/backoff";
import { actsOn, allWords, filterWords } from "../../src/acts/names";
import { part } from "../../src/acts/part";
import type { Operation, QueueRow } from "../../src/api/types";
import { reasons } from "../../src/pages/overview/reasons";

test("each state offers the acts that apply to it", () => {
  assert.deepEqual(actsOn("dead"), ["retry", "delete"]);
  assert.deepEqual(actsOn("working"), ["cancel"]);
  assert.deepEqual(actsOn("retry"), ["run_now", "cancel"]);
  assert.deepEqual(actsOn("success"), []);
});

test("an act on all has its words", () => {
  assert.deepEqual(
    ["Retry all", "Run all that match now"],
    [allWords("retry", false), allWords("run_now", true)],
  );
});

test("a filter is told in words", () => {
  const words = filterWords({
    queue: "mail",
    state: "dead",
    fingerprint: "k3",
    older_ms: 90_000,
    text: "x",
  });
  assert.equal(
    words,
    "queue mail, state dead, failure k3, older than 90 s, “x” in the first 200 characters of the last error, in the same letter case",
  );
});

test("a filter of the command line may have no queue, several states and several headers", () => {
  const none = { queue: null, queues: [], state: null, states: ["ready", "delayed"], headers: [] };
  assert.equal(filterWords(none), "all queues, in ready or delayed");
  const many = { queues: ["a", "b", "c", "d", "e", "f"], headers: ["x=1", "y"], cause: "lost" };
  const words = "queues a, b, c, d, e and 1 more, cause lost, header x=1, header y";
  assert.equal(filterWords(many), words);
});

test("an operation's part counts what is asked to stop, refused or gone, and is whole when it is done", () => {
  const operation = {
    state: "running",
    matched: 10,
    done: 3,
    asked_to_stop: 1,
    refused: 1,
    gone: 1,
  } as Operation;
  assert.equal(part(operation), 0.6);
  assert.equal(part({ ...operation, state: "done" }), 1);
  assert.equal(part({ ...operation, matched: 0 }), 0);
});

test("the wait before a new attempt doubles up to 30 s, and chance takes off up to half", () => {
  assert.deepEqual(
    [1, 2, 3, 6, 100].map((failures) => backoff(failures, 0)),
    [1000, 2000, 4000, 30_000, 30_000],
  );
  assert.equal(backoff(1, 1), 500);
});

test("a queue that nobody serves needs attention, one that keeps up doesn't", () => {
  const calm = {
    paused: null,
    slots: 4,
    counts: { ready: 3, dead: 0 },
    oldest_ms: 100,
    drain_ms: 0,
    failed_1h: 0,
    want_slots: 4,
    problem: null,
  };
  assert.deepEqual(reasons(calm as QueueRow), []);
  assert.deepEqual(
    reasons({ ...calm, unserved: true } as QueueRow).map((reason) => reason.text),
    ["not served"],
  );
  assert.deepEqual(
    reasons({ ...calm, problem: "WRONGTYPE" } as QueueRow).map((reason) => reason.text),
    ["can't be read"],
  );
});

test("what is wrong now comes before what has failed earlier", () => {
  const row = {
    paused: null,
    slots: 0,
    unserved: true,
    counts: { ready: 3, dead: 9 },
    oldest_ms: 90_000,
    drain_ms: 0,
    failed_1h: 7,
    want_slots: 1,
    problem: null,
  };
  assert.deepEqual(
    reasons(row as QueueRow).map((reason) => reason.text),
    ["not served", "behind"],
  );
});
