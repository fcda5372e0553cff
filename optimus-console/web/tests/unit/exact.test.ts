import assert from "node:assert/strict";
import { test } from "node:test";
import type { Hits } from "../../src/api/types";
import { exact } from "../../src/pages/search/exact";

const ID = "mail/019aab0c-0000-7000-9000-c0ffee42d00d";
const UUID = ID.slice(5);
const hit = (kind: string, id: string) => ({ kind, id, text: "", href: `#/tasks/${id}` });
const hits = (q: string, ...of: Hits["hits"]): Hits => ({
  q,
  hits: of,
  more: [],
  scan: [],
  unread: [],
  causes_left_out: 0,
  biz_ids_left_out: 0,
});

test("the id of a task leads to it, with or without its queue", () => {
  for (const typed of [ID, UUID, UUID.toUpperCase()])
    assert.equal(exact(hits(typed, hit("task", ID), hit("failure", "x")), typed), `#/tasks/${ID}`);
});

test("nothing else does", () => {
  assert.equal(exact(undefined, ID), undefined);
  assert.equal(exact(hits("019aab", hit("task", ID)), "019aab"), undefined, "a part of an id");
  assert.equal(exact(hits("o-17", hit("biz_id", ID)), "o-17"), undefined, "a biz id");
  assert.equal(exact(hits(ID, hit("task", ID)), `${ID}x`), undefined, "the answer to another text");
  const two = hits(UUID, hit("task", ID), hit("task", `other/${UUID}`));
  assert.equal(exact(two, UUID), undefined, "two queues have it");
});
