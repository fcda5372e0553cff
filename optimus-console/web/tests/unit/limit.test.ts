import assert from "node:assert/strict";
import { test } from "node:test";
import { fieldsOf, limitOf, limitWords } from "../../src/acts/limit";
import type { ThingRow } from "../../src/api/types";

const row = (facts: Record<string, string>) =>
  ({ facts: Object.entries(facts).map(([name, value]) => ({ name, value })) }) as ThingRow;

test("a limit is read from its fields, and said in words", () => {
  const limit = limitOf({ rate: " 5 / m", burst: "2", working: "3 " });
  assert.deepEqual(limit, { rate: "5/m", burst: 2, max_working: 3 });
  const words =
    "At most 5 start a minute, 2 at once after a pause. At most 3 run at once, over all workers.";
  assert.equal(limitWords({ rate: "5/m", burst: 2, max_working: 3 }), words);
  assert.deepEqual(limitOf({ rate: "", burst: "", working: "8" }), { max_working: 8 });
});

test("what can't be a limit is told before it is sent", () => {
  const wrong = (rate: string, burst: string, working: string) => limitOf({ rate, burst, working });
  assert.match(String(wrong("", "", "")), /^Write a rate, or/);
  assert.match(String(wrong("5", "", "")), /such as 100\/s/);
  assert.match(String(wrong("5/w", "", "")), /such as 100\/s/);
  assert.match(String(wrong("", "3", "1")), /without a rate/);
  for (const number of ["0", "-1", "1.5", "x", "4294967296"])
    assert.match(String(wrong("", "", number)), /at least 1/);
});

test("the fields begin with the limit that there is", () => {
  const fields = fieldsOf(row({ rate: "5/m", burst: "2", max_working: "3", working: "1" }));
  assert.deepEqual(fields, { rate: "5/m", burst: "2", working: "3" });
  const odd = fieldsOf(row({ rate: "1 in 7.000001s", burst: "1" }));
  assert.deepEqual(odd, { rate: "", burst: "", working: "" });
  assert.deepEqual(fieldsOf(undefined), { rate: "", burst: "", working: "" });
});
