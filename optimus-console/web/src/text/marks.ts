// Splits text into what may be shown as it is and what must be made visible: control characters,
// characters that change the direction of text, and characters without a width. Without this, a
// task's name could look like another name, or could turn the rest of a row around.

/** A piece of text. A mark stands for one character and has its code, such as `U+202E`. */
export type Piece = { text: string; mark: false } | { text: string; mark: true; name: string };

const NAMES: Record<number, string> = {
  0x0: "null",
  0x7: "alert",
  0x8: "backspace",
  0x9: "tab",
  0xa: "line feed",
  0xd: "carriage return",
  0x1b: "escape",
  0x7f: "delete",
  0xad: "soft hyphen",
  0x200b: "zero width space",
  0x200c: "zero width non-joiner",
  0x200d: "zero width joiner",
  0x200e: "left-to-right mark",
  0x200f: "right-to-left mark",
  0x202a: "left-to-right embedding",
  0x202b: "right-to-left embedding",
  0x202c: "pop directional formatting",
  0x202d: "left-to-right override",
  0x202e: "right-to-left override",
  0x2066: "left-to-right isolate",
  0x2067: "right-to-left isolate",
  0x2068: "first strong isolate",
  0x2069: "pop directional isolate",
  0xfeff: "byte order mark",
};

// Built from numbers, so that no such character stands in this file.
const RANGES: [number, number][] = [
  [0x0, 0x1f],
  [0x7f, 0x9f],
  [0xad, 0xad],
  [0x34f, 0x34f],
  [0x61c, 0x61c],
  [0x115f, 0x1160],
  [0x17b4, 0x17b5],
  [0x180b, 0x180f],
  [0x200b, 0x200f],
  [0x2028, 0x202e],
  [0x2060, 0x206f],
  [0x2800, 0x2800],
  [0x3164, 0x3164],
  [0xd800, 0xdfff],
  [0xfe00, 0xfe0f],
  [0xfeff, 0xfeff],
  [0xffa0, 0xffa0],
  [0xfff0, 0xfffb],
  [0x1bca0, 0x1bca3],
  [0x1d173, 0x1d17a],
  [0xe0000, 0xe0fff],
];
const hex = (code: number) => `\\u{${code.toString(16)}}`;
const MARKED = new RegExp(`[${RANGES.map(([a, b]) => `${hex(a)}-${hex(b)}`).join("")}]`, "gu");
const JOINER = 0x200d;
const PICTURE = /\p{Extended_Pictographic}/u;
const AFTER_PICTURE = /\p{Extended_Pictographic}$/u;
const BEFORE_JOINER = /(\p{Extended_Pictographic}|\p{Emoji_Modifier}|\ufe0f)$/u;

/** Returns the code of a character in the usual form, such as `U+202E`. */
export function code(char: string): string {
  return `U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
}

function name(char: string): string {
  const known = NAMES[char.codePointAt(0) ?? 0];
  return known === undefined ? code(char) : `${code(char)} ${known}`;
}

/** Whether a joiner is part of an emoji such as a family. Then it does no harm. */
function joins(text: string, at: number): boolean {
  const next = text.codePointAt(at + 1);
  if (text.codePointAt(at) !== JOINER || next === undefined) return false;
  return (
    BEFORE_JOINER.test(text.slice(Math.max(0, at - 2), at)) &&
    PICTURE.test(String.fromCodePoint(next))
  );
}

/** Whether a character chooses the look of the emoji before it, or of a key such as `1`. */
function chooses(text: string, at: number): boolean {
  if (text[at] !== "\ufe0e" && text[at] !== "\ufe0f") return false;
  const before = text.slice(Math.max(0, at - 2), at);
  return AFTER_PICTURE.test(before) || (/[0-9#*]$/.test(before) && text[at + 1] === "\u20e3");
}

/** Splits text into pieces. Line feeds and tabs stay text if `lines` is given. */
export function pieces(text: string, keep: "" | "lines" = ""): Piece[] {
  const found: Piece[] = [];
  let from = 0;
  for (const match of text.matchAll(MARKED)) {
    const char = match[0];
    if (keep === "lines" && (char === "\n" || char === "\t")) continue;
    if (joins(text, match.index) || chooses(text, match.index)) continue;
    if (match.index > from) found.push({ text: text.slice(from, match.index), mark: false });
    found.push({ text: code(char), mark: true, name: name(char) });
    from = match.index + char.length;
  }
  if (from < text.length) found.push({ text: text.slice(from), mark: false });
  return found;
}

/** Returns text for a place that takes only a string, such as a title: marks become `<U+202E>`. */
export function plain(text: string): string {
  return pieces(text)
    .map((piece) => (piece.mark ? `<${piece.text}>` : piece.text))
    .join("");
}

/** Cuts text to a number of UTF-16 units without cutting a character in two. */
export function cut(text: string, length: number): string {
  if (text.length <= length) return text;
  const last = text.charCodeAt(length - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? length - 1 : length);
}
