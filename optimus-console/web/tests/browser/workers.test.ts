// What is said of processes: of none, and of those that do not work.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Overview, ProcessRow } from "../../src/api/types";
import { changed, consoles, streamOnce } from "./console";
import { goTo, settled } from "./kit";

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

const STUCK = "section:has(h2:text-is('Processes that need attention'))";

test("the overview leads to a process whose runtime is blocked, and to one with late handlers", () =>
  open({}, async ({ page }) => {
    const rows = page.locator(`${STUCK} tbody tr`);
    await rows.first().getByText("blocked for 12 s").waitFor();
    await rows.nth(1).getByText("1 late handler").waitFor();
    await rows.first().getByRole("link", { name: "node-3:413" }).click();
    await page.waitForSelector(".process:has-text('node-3:413')");
    assert.equal(await page.locator(".process").count(), 1);
  }));

test("the overview says nothing of processes while none is kept from work", () =>
  open({}, async ({ page }) => {
    await changed<Overview>(page, "overview", (of) => ({ ...of, stuck: [] }));
    await streamOnce(page, "events*", []);
    await page.reload();
    await settled(page);
    await page.getByText("Queues that need attention").first().waitFor();
    assert.equal(await page.locator(STUCK).count(), 0);
  }));

test("a lost process says what it ran last, and nothing is asked of it", () =>
  open({}, async ({ page }) => {
    const task = {
      id: "mail/01890a5d-ac96-774b-bcce-b302099a8057",
      task: "resize",
      attempt: 2,
      since_ms: Date.now() - 90_000,
      late_ms: null,
      progress: null,
    };
    await goTo(page, "#/workers?process=p5");
    const process = page.locator(".process");
    await process.getByText("It ran no task when it was last heard from.").waitFor();
    assert.equal(await process.getByText("Idle").count(), 0);
    assert.equal(await process.locator(".acts button").count(), 0);
    await changed<{ rows: ProcessRow[] }>(page, "processes*", (of) => ({
      ...of,
      rows: of.rows.map((row) => (row.lost ? { ...row, running: [task] } : row)),
    }));
    await goTo(page, "#/overview");
    await goTo(page, "#/workers?process=p5");
    await process.getByText("When it was last heard from, it ran:").waitFor();
    const row = process.locator("tbody tr");
    await row.getByText("resize").waitFor();
    await row.getByText("2 min ago").or(row.getByText("1 min ago")).first().waitFor();
    assert.equal(await process.getByText("Runs for").count(), 0);
    assert.equal(await process.locator(".acts button").count(), 0);
    await goTo(page, "#/workers?process=p1");
    assert.equal(await process.locator(".acts button").count(), 3);
  }));
