// What the page of processes says when it shows none of them.

import { test } from "node:test";
import type { ProcessRow } from "../../src/api/types";
import { changed, consoles } from "./console";
import { goTo } from "./kit";

const open = consoles();

test("a process that has ended is not taken for a console without workers", () =>
  open({}, async ({ page }) => {
    await goTo(page, "#/workers?process=node-7:4100-aaaa");
    await page.waitForSelector(".empty:has-text('This process does not run')");
  }));

test("a process behind the first page is reached", () =>
  open({}, async ({ page }) => {
    await page.route("**/api/v1/processes?limit=100", async (route) => {
      const { total } = (await (await route.fetch()).json()) as { total: number };
      await route.fulfill({ json: { rows: [], next: "node-1", total } });
    });
    await goTo(page, "#/workers?process=p1");
    await page.waitForSelector(".empty:has-text('Show more to go on')");
    await page.click("button:has-text('Show more')");
    await page.waitForSelector(".process:has-text('node-1')");
  }));

test("a reader whose queues no process serves is told so, and not that none runs", () =>
  open({}, async ({ page }) => {
    const none = (of: { rows: ProcessRow[] }) => ({ ...of, rows: [] });
    await changed(page, "processes*", none);
    await goTo(page, "#/workers");
    await page.waitForSelector(".empty:has-text('No process serves your queues')");
  }));
