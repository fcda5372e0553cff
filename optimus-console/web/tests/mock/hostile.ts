// Replaces texts in an answer by what an attacker or a broken program could put there.

const code = (...codes: number[]) => String.fromCodePoint(...codes);

export const HOSTILE = [
  `<img src=x onerror="window.owned=1">`,
  `"><script>window.owned=1</script>`,
  `${code(0x202e)}gnp.exe${code(0x202c)} after`,
  `zero${code(0x200b)}width${code(0x200d, 0xfeff)}`,
  `${"M".repeat(8192)}`,
  `${code(0x1f468, 0x200d, 0x1f469, 0x200d, 0x1f467)} ${code(0x1f6a8)} ${code(0x1f1ea, 0x1f1fa)}`,
  `a${code(0x0)}b${code(0x1b)}[31mred${code(0x7)}`,
  `line one\nline two\r\n\tline three`,
  `Z${code(0x300, 0x301, 0x302, 0x303, 0x304, 0x305, 0x306, 0x307).repeat(30)}algo`,
  `javascript:window.owned=1`,
  `__proto__`,
  `${code(0x627, 0x644, 0x639, 0x631, 0x628, 0x64a, 0x629)} ${code(0x5e2, 0x5d1, 0x5e8)}`,
  `{{constructor.constructor('window.owned=1')()}}`,
  ` ${code(0x2066)}isolated${code(0x2069)} ${code(0xad)}soft `,
  `../../../etc/passwd?a=b&c#d%00%2f`,
  `'; DROP TABLE tasks; --`,
];

/** Fields whose values are words of the contract. */
const FIXED = new Set([
  "state",
  "kind",
  "role",
  "auth",
  "act",
  "unit",
  "level",
  "next",
  "href",
  "acts",
  "payloads",
]);

/** Returns the same answer with hostile texts. Ids stay different from each other. */
export function hostile(answer: unknown): unknown {
  let turn = 0;
  const text = () => HOSTILE[turn++ % HOSTILE.length] ?? "";
  const walk = (value: unknown, name: string): unknown => {
    if (FIXED.has(name)) return value;
    if (typeof value === "string") {
      if (name === "id" || name === "sample")
        return `${text().slice(0, 300)}${turn}/${value.split("/").pop() ?? ""}`;
      return name === "queue" ? `${text()} ${turn}` : text();
    }
    if (Array.isArray(value)) return value.map((entry) => walk(entry, name));
    if (value === null || typeof value !== "object") return value;
    const entries = Object.entries(value).map(([key, entry]) => {
      const named = name === "headers" ? `${text()}${turn}` : key;
      return [named, walk(entry, name === "headers" ? "" : key)];
    });
    return Object.fromEntries(entries);
  };
  return walk(answer, "");
}
