// What a search opens.

import assert from "node:assert/strict";
import { test } from "node:test";
import { consoles } from "./console";

const open = consoles();

const [ONE, TWO] = ["01890a5d-ac96-774b-bcce-b302099a8051", "01890a5d-ac96-774b-bcce-b302099a8052"];

test("Enter in the palette never opens what was found for another text", () =>
  open({}, async ({ page }) => {
    await page.keyboard.press("/");
    const field = page.locator(".palette-field");
    await field.fill(ONE);
    await page.waitForSelector(`[role=option]:has-text('${ONE}')`);
    await field.fill(TWO);
    await page.keyboard.press("Enter");
    await page.waitForFunction((id) => location.hash.includes(id), TWO);
    await page.waitForSelector(".timeline");
    assert.equal(await page.evaluate(() => location.hash), `#/tasks/mail/${TWO}`);
  }));
