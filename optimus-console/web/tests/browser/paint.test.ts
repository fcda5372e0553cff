// Measures how soon a page is painted: the first text, and the largest one, which has the data.
// With CONSOLE_URL it measures that server (without authentication), else the mock server.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Browser } from "playwright-core";
import { mock } from "../mock/server";
import { browser, DIST, settled, tab } from "./kit";

const REAL = process.env["CONSOLE_URL"];
/** How often each page is opened. The quickest time counts: other programs disturb the others. */
const TIMES = 5;
/** Many times what a free machine needs. */
const MOST_MS = 3000;

interface Paint {
  first: number;
  largest: number;
}

/** Opens a page in a tab without a cache, and returns when it was painted. */
async function paint(chromium: Browser, url: string, href: string): Promise<Paint> {
  const { page, context } = await tab(chromium, url);
  await page.goto(new URL(href, url).href);
  await settled(page);
  const found = await page.evaluate(
    () =>
      new Promise<Paint>((done) => {
        const [first] = performance.getEntriesByName("first-contentful-paint");
        new PerformanceObserver((list) => {
          const largest = list.getEntries().at(-1)?.startTime ?? 0;
          done({ first: first?.startTime ?? 0, largest });
        }).observe({ type: "largest-contentful-paint", buffered: true });
      }),
  );
  await context.close();
  return found;
}

test("a page is painted soon", async () => {
  const own = REAL === undefined ? await mock({ dist: DIST }) : undefined;
  const url = REAL ?? own?.url ?? "";
  const chromium = await browser();
  for (const href of ["#/overview", "#/queues"]) {
    const all: Paint[] = [];
    for (let time = 0; time < TIMES; time++) all.push(await paint(chromium, url, href));
    const first = Math.min(...all.map((one) => one.first));
    const largest = Math.min(...all.map((one) => one.largest));
    console.log(`${href}: first paint ${first.toFixed(0)} ms, largest ${largest.toFixed(0)} ms`);
    assert.ok(first > 0 && largest >= first, `${first} and ${largest} ms`);
    assert.ok(largest <= MOST_MS, `${href} is painted after ${largest} ms`);
  }
  await chromium.close();
  await own?.close();
});
