import assert from "node:assert/strict";
import { test } from "node:test";
import { indented } from "../../src/text/json";

const text = (json: string) =>
  indented(json)
    ?.map((token) => token.text)
    .join("");
const kinds = (json: string) =>
  indented(json)
    ?.filter((token) => token.kind !== "space")
    .map((token) => token.kind);

test("only the spaces outside of strings change", () => {
  const json = `{"id":9007199254740993123,"a":[1.50,7e2,{}],"a":"x, \\"y\\": {z}","e":[]}`;
  const expected = `{
  "id": 9007199254740993123,
  "a": [
    1.50,
    7e2,
    {}
  ],
  "a": "x, \\"y\\": {z}",
  "e": []
}`;
  assert.equal(text(json), expected);
});

test("keys, strings and other values differ", () => {
  assert.deepEqual(kinds(`{"a":"b","c":true}`), [
    "sign",
    "key",
    "sign",
    "string",
    "sign",
    "key",
    "sign",
    "atom",
    "sign",
  ]);
});

test("text that is not an object or an array is left alone", () => {
  for (const other of ["", "plain words", `"a string"`, "42", `{"open`, "\u0000{"])
    assert.equal(indented(other), undefined);
});

test("deep nesting is indented only so far", () => {
  const deep = text("[".repeat(5000) + "]".repeat(5000)) ?? "";
  assert.ok(Math.max(...deep.split("\n").map((line) => line.length)) < 100);
});
