// Indents JSON as text. Payloads are never parsed: a parser would round large integers and would
// hide keys that occur twice. Only spaces outside of strings change.

/** A piece of JSON text, by which it is coloured. */
export type Token = { kind: "key" | "string" | "atom" | "sign" | "space"; text: string };

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s"{}[\],:]+|\s+/gsuy;

/** Returns the tokens of JSON text, or nothing if the text is not of that form. */
function tokens(text: string): string[] | undefined {
  const found: string[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.length) {
    const match = TOKEN.exec(text);
    if (match === null) return undefined;
    if (match[0].trim() !== "") found.push(match[0]);
  }
  return found;
}

/** Returns whether text begins as an object or an array does. */
function isNested(text: string): boolean {
  return /^\s*[[{]/.test(text);
}

/** Returns indented tokens of JSON text, or nothing if it is not an object or an array. */
export function indented(text: string): Token[] | undefined {
  const words = isNested(text) ? tokens(text) : undefined;
  if (words === undefined) return undefined;
  const out: Token[] = [];
  let depth = 0;
  const line = () => out.push({ kind: "space", text: `\n${"  ".repeat(depth)}` });
  for (const [index, word] of words.entries()) {
    const next = words[index + 1];
    if (word === "{" || word === "[") {
      out.push({ kind: "sign", text: word });
      depth = Math.min(depth + 1, 40);
      if (next !== "}" && next !== "]") line();
    } else if (word === "}" || word === "]") {
      depth = Math.max(depth - 1, 0);
      const before = words[index - 1];
      if (before !== "{" && before !== "[") line();
      out.push({ kind: "sign", text: word });
    } else if (word === ",") {
      out.push({ kind: "sign", text: word });
      line();
    } else if (word === ":") {
      out.push({ kind: "sign", text: ": " });
    } else {
      const string = word.startsWith('"');
      out.push({ kind: !string ? "atom" : next === ":" ? "key" : "string", text: word });
    }
  }
  return out;
}
