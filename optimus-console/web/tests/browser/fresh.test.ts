// Which of the answers is shown: the newest one, unless rows must not move.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { ProcessRow } from "../../src/api/types";
import { changed, consoles, streamOnce } from "./console";
import { goTo } from "./kit";

const open = consoles();

test("what an act has changed is shown at once, also if the stream has told otherwise before", () =>
  open({}, async ({ page }, on) => {
    const row = on.store.queues.find((one) => one.queue === "mail");
    await streamOnce(page, "events?queue=mail", [["queue", { ...row, oldest_ms: 7_200_000 }]]);
    await goTo(page, "#/queues/mail");
    await page.waitForSelector(".facts:has-text('2 h')");
    await page.click("button:has-text('Pause')");
    await page.locator("dialog[open]").getByRole("button", { name: "Pause" }).click();
    await page.waitForSelector(".banner:has-text('Paused by ann')", { timeout: 3000 });
    await page.waitForSelector("button:has-text('Resume')");
  }));

test("the stream tells of a queue sooner than the next answer", () =>
  open({}, async ({ page }, on) => {
    await goTo(page, "#/queues/mail");
    await page.route("**/api/v1/queues/mail", (route) => route.abort());
    const row = on.store.queues.find((one) => one.queue === "mail");
    if (row) row.paused = { by: "bo", why: "smtp is down", since_ms: null };
    await page.waitForSelector(".banner:has-text('Paused by bo: smtp is down')");
  }));

test("rows that were asked for before one was selected do not move", () =>
  open({}, async ({ page }, on) => {
    let release: (() => void) | undefined;
    const rows = page.locator("tbody a.mono");
    await goTo(page, "#/queues/mail?state=dead");
    const before = await rows.allInnerTexts();
    const isAsked = new Promise<void>((asked) =>
      page.route("**/api/v1/queues/mail/tasks*", async (route) => {
        if (release === undefined) {
          asked();
          await new Promise<void>((done) => (release = done));
        }
        await route.continue();
      }),
    );
    await isAsked;
    await page.locator("tbody input[type=checkbox]").nth(7).check();
    await page.waitForSelector(".live:has-text('rows are selected')");
    for (const id of before.slice(0, 5)) on.store.gone.add(`mail/${id}`);
    const answered = page.waitForResponse("**/api/v1/queues/mail/tasks*");
    release?.();
    await (await answered).finished();
    await page.evaluate(() => new Promise((done) => setTimeout(done, 0)));
    assert.deepEqual(await rows.allInnerTexts(), before);
    await page.click(".selected button:has-text('Clear')");
    await page.waitForFunction(
      (id) => !document.querySelector("main")?.textContent?.includes(id),
      before[0] ?? "",
    );
  }));

test("the overview is asked for again and again while there is no stream", () =>
  open({}, async ({ page }, on) => {
    on.refuseStreams(true);
    on.dropStreams();
    await page.waitForSelector(".live.is-lost");
    for (const row of on.store.queues) row.counts.dead = 0;
    await page.waitForSelector(".tile:has(dt:text-is('Dead')) .tile-value:text-is('0')");
  }));

test("the dialog of slots begins with the number of now", () =>
  open({}, async ({ page }) => {
    let slots = 12;
    await changed<{ rows: ProcessRow[] }>(page, "processes*", (of) => ({
      ...of,
      rows: of.rows.map((row) => ({ ...row, slots })),
    }));
    await goTo(page, "#/workers");
    await page.locator(".process-load:has-text('/ 12')").first().waitFor();
    slots = 48;
    await page.locator(".process-load:has-text('/ 48')").first().waitFor();
    await page.locator(".process button:has-text('Slots')").first().click();
    const field = page.locator("dialog[open]").getByLabel("Slots", { exact: true });
    assert.equal(await field.inputValue(), "48");
  }));
