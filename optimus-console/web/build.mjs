// Builds the console into ../dist. The names of the files are fixed: the server sends a checksum of
// each as its ETag.
import { build } from "esbuild";
import { copyFile, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";

const OUT = new URL("../dist/", import.meta.url);
const SRC = new URL("src/", import.meta.url);
/** The most that all files together may take, in bytes after gzip. */
const BUDGET = 90 * 1024;

await rm(OUT, { recursive: true, force: true });
await mkdir(OUT, { recursive: true });
await build({
  absWorkingDir: new URL(".", import.meta.url).pathname,
  entryPoints: { app: "src/main.tsx" },
  outdir: OUT.pathname,
  bundle: true,
  format: "esm",
  target: "es2022",
  minify: true,
  legalComments: "none",
  jsx: "automatic",
  jsxImportSource: "preact",
});
for (const name of ["index.html", "icon.svg"])
  await copyFile(new URL(name, SRC), new URL(name, OUT));

// The licences of what is in the bundle ask for their text.
const licences = [];
for (const name of ["preact", "@preact/signals", "@preact/signals-core", "uplot"]) {
  const folder = new URL(`node_modules/${name}/`, import.meta.url);
  const { version } = JSON.parse(await readFile(new URL("package.json", folder), "utf8"));
  const text = await readFile(new URL("LICENSE", folder), "utf8");
  licences.push(`${name} ${version}\n\n${text.trim()}\n`);
}
await writeFile(new URL("LICENSES.txt", OUT), licences.join(`\n${"-".repeat(72)}\n\n`));

let total = 0;
for (const name of ["index.html", "icon.svg", "app.css", "app.js", "LICENSES.txt"]) {
  const bytes = gzipSync(await readFile(new URL(name, OUT)), { level: 9 }).length;
  total += bytes;
  console.log(`${name.padEnd(12)} ${(bytes / 1024).toFixed(1).padStart(5)} kB gz`);
}
console.log(`${"in all".padEnd(12)} ${(total / 1024).toFixed(1).padStart(5)} kB gz of 90`);
if (total > BUDGET) {
  console.error("The files are larger than the budget.");
  process.exit(1);
}
