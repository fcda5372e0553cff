// What the page of a task says of attempts that were lost.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Page } from "playwright-core";
import type { ErrorRow, TaskDetail } from "../../src/api/types";
import { changed, consoles } from "./console";
import { clipped, goTo } from "./kit";

const open = consoles();
const PAGE = "#/tasks/mail/dead0000-ac96-774b-bcce-b302099a8057";

const loss = (attempt: number): ErrorRow => ({
  at_ms: Date.now() - 9000 + attempt,
  attempt,
  reason: "lost",
  message: `worker ip-10-0-3-17.eu-west-1.compute.internal-413-0a0b0c0d was not heard from for a whole lease in attempt ${attempt}`,
  causes: [],
  worker: "node-3-413-0a0b0c0d",
  fingerprint: null,
});

/** Lets each task be dead of three losses. */
async function lost(page: Page): Promise<void> {
  await changed<TaskDetail>(page, "tasks/mail/*", (of) => ({
    ...of,
    state: "dead",
    attempt: 3,
    max_retry: 1,
    failures: 0,
    losses: 3,
    errors: [1, 2, 3].map(loss),
  }));
}

test("the attempts of a task that was lost are not counted among its retries", () =>
  open({}, async ({ page }) => {
    await lost(page);
    await goTo(page, PAGE);
    const facts = page.locator("section:has(h2:text-is('Facts'))");
    await facts.getByText("3 (3 lost)").waitFor();
    assert.equal(await facts.getByText("of 2").count(), 0);
  }));

test("no badge of a lost attempt is clipped, on a wide or a narrow window", () =>
  open({}, async ({ page }) => {
    await lost(page);
    for (const width of [1440, 390]) {
      await page.setViewportSize({ width, height: 900 });
      await goTo(page, PAGE);
      assert.equal(await page.locator(".error .tag").count(), 3);
      assert.deepEqual(await clipped(page), [], `${width} px`);
      await goTo(page, "#/overview");
    }
  }));
