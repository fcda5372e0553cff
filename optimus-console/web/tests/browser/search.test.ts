// What a search opens.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Hits } from "../../src/api/types";
import { changed, consoles } from "./console";
import { goTo } from "./kit";

const open = consoles();

const [ONE, TWO] = ["01890a5d-ac96-774b-bcce-b302099a8051", "01890a5d-ac96-774b-bcce-b302099a8052"];

test("a search says what it has left out", () =>
  open({}, async ({ page }) => {
    const left = { more: ["biz_id", "queue"], causes_left_out: 7, biz_ids_left_out: 2 };
    const cut = (of: Hits) => ({ ...of, ...left });
    await changed<Hits>(page, "search*", cut);
    await goTo(page, "#/search?q=mail");
    const said = page.locator("main p.more[role=status]");
    await said.waitFor();
    assert.equal(
      await said.innerText(),
      "More than these match as biz id. More than these match as queue. " +
        "The failures in 7 further queues were not looked through. " +
        "Business ids were not looked up in 2 queues: no worker tells their tasks.",
    );
  }));

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
