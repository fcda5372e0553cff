// Writes a picture of each page. `SCREENSHOTS` is the folder; without it, docs/console. With
// `CONSOLE_URL` the pictures are of that server. `SCREENSHOTS_ALL` adds dark and narrow ones.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdir, stat } from "node:fs/promises";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { mock } from "../mock/server";
import { browser, DIST, goTo, type Look, settled, tab } from "../browser/kit";
import { routes } from "../browser/routes";

const DOCS = new URL("../../../../docs/console/", import.meta.url).pathname;
const FOLDER = process.env["SCREENSHOTS"] ?? DOCS;
const isAll = process.env["SCREENSHOTS_ALL"] !== undefined;
/** The pages that the documents show: each one, and of a queue and a task the richest. */
const SHOWN = new Set(
  (
    "overview queues queue-dead queue-statistics queue-history task-working failures workers " +
    "search operations audit redis lanes limits schedules groups shards sources dispensers"
  ).split(" "),
);
const MOST_BYTES = 1_500_000;
const NOW = Date.UTC(2026, 10, 27, 14, 5, 0);

const ALL: Look[] = [
  { width: 1440, dark: false },
  { width: 1440, dark: true },
  { width: 390, dark: false },
  { width: 390, dark: true },
];

test("pictures of the pages", async () => {
  const own =
    process.env["CONSOLE_URL"] === undefined
      ? await mock({ dist: DIST, now: NOW, mode: process.env["SCREENSHOTS_MODE"] as "fine" })
      : undefined;
  const url = process.env["CONSOLE_URL"] ?? own?.url ?? "";
  const chromium = await browser();
  after(async () => {
    await chromium.close();
    await own?.close();
  });
  const isSmall = spawnSync("pngquant", ["--version"]).status === 0;
  const hint = "the pictures of the documents need pngquant: run `cargo xtask console --pictures`";
  assert.ok(isAll || isSmall, hint);
  await mkdir(FOLDER, { recursive: true });
  let bytes = 0;
  for (const look of isAll ? ALL : ALL.slice(0, 1)) {
    const { page, context } = await tab(chromium, url, look);
    await page.goto(url);
    await settled(page);
    if (own) await operate(page);
    for (const { name, href } of await routes(url)) {
      if (!isAll && !SHOWN.has(name)) continue;
      await goTo(page, href);
      const suffix = isAll ? `-${look.width}-${look.dark ? "dark" : "light"}` : "";
      const path = `${FOLDER}/${name}${suffix}.png`;
      await page.screenshot({ path, fullPage: isAll && look.width === 390 });
      // Without this program the pictures are whole, and larger.
      spawnSync("pngquant", [
        "--force",
        "--skip-if-larger",
        "--strip",
        "--output",
        path,
        "64",
        path,
      ]);
      bytes += (await stat(path)).size;
    }
    await context.close();
  }
  if (!isAll) assert.ok(bytes < MOST_BYTES, `${bytes} bytes are too many for the repository`);
  console.log(`${(bytes / 1000).toFixed(0)} kB in ${FOLDER}`);
});

/** Starts an operation, so that its page shows one. */
async function operate(page: Page): Promise<void> {
  await goTo(page, "#/queues/mail?state=dead");
  await page.click("button:has-text('Retry all')");
  await page.getByRole("button", { name: /^Retry .* tasks$/ }).click();
  await page.getByText("done", { exact: false }).first().waitFor();
  await page.keyboard.press("Escape");
  await page.click("[aria-label=Dismiss]");
}
