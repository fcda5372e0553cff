import assert from "node:assert/strict";
import { test } from "node:test";
import { cut, pieces, plain } from "../../src/text/marks";

const char = String.fromCodePoint;

test("characters that change the direction of text become marks", () => {
  assert.equal(plain(`${char(0x202e)}gnp.exe${char(0x202c)}`), "<U+202E>gnp.exe<U+202C>");
  assert.deepEqual(pieces(`a${char(0x2066)}b`), [
    { text: "a", mark: false },
    { text: "U+2066", mark: true, name: "U+2066 left-to-right isolate" },
    { text: "b", mark: false },
  ]);
});

test("characters without a width become marks", () => {
  for (const code of [0x200b, 0xad, 0xfeff, 0x2060, 0x3164, 0x115f, 0xe0041]) {
    const hex = code.toString(16).toUpperCase().padStart(4, "0");
    assert.equal(plain(`a${char(code)}b`), `a<U+${hex}>b`);
  }
});

test("characters that only choose a form, or that are blank, become marks", () => {
  for (const code of [
    0xfe00, 0xfe0f, 0xe0100, 0xe01ef, 0x180b, 0x2800, 0x1d173, 0x1bca0, 0xe0fff,
  ]) {
    const hex = code.toString(16).toUpperCase();
    assert.equal(plain(`mail${char(code)}`), `mail<U+${hex}>`);
  }
  const chosen = [char(0x2764, 0xfe0f), char(0x1f441, 0xfe0e), char(0x31, 0xfe0f, 0x20e3)];
  assert.deepEqual(chosen.map(plain), chosen, "an emoji has its look");
  assert.equal(plain(char(0x2764, 0xfe0f, 0xfe0f)), `${char(0x2764, 0xfe0f)}<U+FE0F>`);
});

test("control characters and halves of characters become marks", () => {
  assert.equal(
    plain(`${char(0)}${char(0x1b)}[31m${char(0x7f)}${char(0x85)}`),
    "<U+0000><U+001B>[31m<U+007F><U+0085>",
  );
  assert.equal(plain("a\ud800b"), "a<U+D800>b");
});

test("lines and tabs stay where lines are shown, and are marks elsewhere", () => {
  assert.equal(plain("a\n\tb"), "a<U+000A><U+0009>b");
  assert.deepEqual(pieces("a\n\tb", "lines"), [{ text: "a\n\tb", mark: false }]);
  assert.equal(pieces("a\r\nb", "lines").length, 3, "a carriage return is not a line feed");
});

test("a joiner within an emoji stays, and elsewhere is a mark", () => {
  const family = char(0x1f468, 0x200d, 0x1f469, 0x200d, 0x1f467);
  assert.equal(plain(family), family);
  const heart = char(0x2764, 0xfe0f, 0x200d, 0x1f525);
  assert.equal(plain(heart), heart);
  assert.equal(plain(`pay${char(0x200d)}pal`), "pay<U+200D>pal");
});

test("other writing stays as it is", () => {
  const words = `${char(0x627, 0x644, 0x639)} ${char(0x5e2, 0x5d1)} é ß 漢字`;
  assert.equal(plain(words), words);
});

test("a character is not cut in two", () => {
  const rocket = char(0x1f680);
  assert.equal(cut(`a${rocket}b`, 2), "a");
  assert.equal(cut(`a${rocket}b`, 3), `a${rocket}`);
  assert.equal(cut("ab", 5), "ab");
});
