// Bundles the tests of a folder and runs them: `node tests/run.mjs unit|browser|screenshots`.

import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { readdir, rm } from "node:fs/promises";

const kind = process.argv[2] ?? "unit";
const root = new URL("../", import.meta.url);
const out = new URL(`.out/${kind}/`, root);
const folder = kind === "screenshots" ? "tests/screenshots" : `tests/${kind}`;
const files = (await readdir(new URL(folder, root))).filter((name) => name.endsWith(".test.ts"));

await rm(out, { recursive: true, force: true });
await build({
  absWorkingDir: root.pathname,
  entryPoints: files.map((name) => `${folder}/${name}`),
  outdir: out.pathname,
  outExtension: { ".js": ".mjs" },
  bundle: true,
  format: "esm",
  platform: "node",
  target: "node20",
  packages: "external",
  sourcemap: "inline",
});
const tests = files.map((name) => new URL(name.replace(/\.ts$/, ".mjs"), out).pathname);
const words = [
  "--enable-source-maps",
  "--test",
  "--test-concurrency=1",
  ...process.argv.slice(3),
  ...tests,
];
const ended = spawnSync(process.execPath, words, { cwd: root.pathname, stdio: "inherit" });
process.exit(ended.status ?? 1);
