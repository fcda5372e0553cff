// Opens the console of a mock server for one test, in a browser that all tests of a file share.

import assert from "node:assert/strict";
import { after, before } from "node:test";
import type { Browser, Page } from "playwright-core";
import { mock, type Mock, type Options } from "../mock/server";
import { browser, DIST, type Opened, settled, tab } from "./kit";

type Use = (opened: Opened, on: Mock) => Promise<void>;

/** Returns a function that opens a console, uses it, and fails if something has gone wrong in it. */
export function consoles(): (options: Partial<Options>, use: Use) => Promise<void> {
  let chromium: Browser;
  before(async () => {
    chromium = await browser();
  });
  after(() => chromium.close());
  return async (options, use) => {
    const on = await mock({ dist: DIST, ...options });
    const opened = await tab(chromium, on.url);
    try {
      await opened.page.goto(on.url);
      await settled(opened.page);
      await use(opened, on);
      assert.deepEqual(opened.offences, []);
    } finally {
      await opened.context.close();
      await on.close();
    }
  };
}

/** Answers a call with what the mock server says, changed. */
export async function changed<Answer>(
  page: Page,
  call: string,
  change: (answer: Answer) => object,
): Promise<void> {
  await page.route(`**/api/v1/${call}`, async (route) => {
    const answer = (await (await route.fetch()).json()) as Answer;
    await route.fulfill({ json: change(answer) });
  });
}

/** Sends these events once; after that, the stream is refused. */
export async function streamOnce(page: Page, call: string, events: [string, object][]) {
  let isSent = false;
  const body = events
    .map(([name, data]) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`)
    .join("");
  await page.route(`**/api/v1/${call}`, (route) => {
    if (isSent) return route.fulfill({ status: 503, json: { error: "unavailable", message: "" } });
    isSent = true;
    return route.fulfill({ contentType: "text/event-stream", body });
  });
}
