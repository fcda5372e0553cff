// What a page shows of what the server does not know, or of an answer that it can't show.

import { test } from "node:test";
import type { Overview } from "../../src/api/types";
import { changed, consoles, streamOnce } from "./console";
import { goTo, settled } from "./kit";

const open = consoles();

test("a Redis that does not tell its numbers leaves the overview whole", () =>
  open({}, async ({ page }) => {
    const redis = { version: null, used_bytes: null, max_bytes: null, up: true };
    await changed<Overview>(page, "overview", (of) => ({ ...of, redis }));
    await streamOnce(page, "events*", []);
    await page.reload();
    await settled(page);
    const tile = page.locator(".tile", { hasText: "Redis –" });
    await tile.getByText("Redis does not tell its memory").waitFor();
    await goTo(page, "#/queues");
    await page.waitForSelector("h1:has-text('Queues')");
  }));

test("a page that can't be shown says so, and the next one opens", () =>
  open({}, async ({ page }) => {
    const broken = { rows: [{ id: "x" }], next: null, total: 1 };
    await changed(page, "processes*", () => broken);
    await page.evaluate(() => {
      location.hash = "#/workers";
    });
    await page.waitForSelector("[role=alert]:has-text('This page can\\'t be shown')");
    await goTo(page, "#/queues");
    await page.waitForSelector("h1:has-text('Queues')");
    await page.unroute("**/api/v1/processes*");
    await goTo(page, "#/workers");
    await page.waitForSelector(".process");
  }));
