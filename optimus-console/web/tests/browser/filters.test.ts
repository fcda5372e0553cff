// The fields of a filter and the address of the page, which say the same.

import assert from "node:assert/strict";
import { test } from "node:test";
import { consoles } from "./console";
import { goTo } from "./kit";

const open = consoles();

test("a link that sets a filter fills its field, which keeps it", () =>
  open({}, async ({ page }) => {
    await goTo(page, "#/queues/mail?state=dead");
    await goTo(page, "#/queues/mail?state=dead&text=welcome");
    const text = page.getByLabel("Text");
    assert.equal(await text.inputValue(), "welcome");
    await page.getByLabel("Task", { exact: true }).focus();
    await text.focus();
    await page.waitForSelector("button:has-text('Retry all that match')");
    assert.match(await page.evaluate(() => location.hash), /text=welcome/);
    await page.click("button:has-text('Clear filters')");
    await page.waitForFunction(() => !location.hash.includes("text"));
    assert.equal(await text.inputValue(), "");
  }));

test("an act on all that match a text says that it looks at errors alone, and the list at more", () =>
  open({}, async ({ page }) => {
    await goTo(page, "#/queues/mail?state=dead&text=timed");
    const hint = await page.getByLabel("Text").getAttribute("placeholder");
    assert.equal(hint, "id, name, header or error");
    await page.click("button:has-text('Retry all that match')");
    const dialog = page.locator("dialog[open]");
    await dialog.getByText("“timed” in the first 200 characters of the last error").waitFor();
    await dialog.getByText("The list finds a text in more places").waitFor();
  }));

test("an age in a link that can't be read is told, and no task is listed or acted on", () =>
  open({}, async ({ page }, on) => {
    await goTo(page, "#/queues/mail?state=dead&age=1w");
    await page.waitForSelector("[role=alert]:has-text('Write an age')");
    assert.equal(await page.locator("tbody tr").count(), 0);
    assert.equal(await page.locator("main button:has-text('all')").count(), 0);
    await page.getByLabel("Older than").fill("7d");
    await page.keyboard.press("Enter");
    await page.waitForSelector("button:has-text('Retry all that match')");
    assert.equal(await page.locator("[role=alert]").count(), 0);
    assert.deepEqual(on.store.acts, []);
  }));
