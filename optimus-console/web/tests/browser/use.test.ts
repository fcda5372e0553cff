// How the console feels: keys, focus, links, and what it says when the server is away.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { FORBIDDEN, mock, type Mock, type Options } from "../mock/server";
import { browser, DIST, faults, goTo, type Opened, settled, tab } from "./kit";

let chromium: Browser;
before(async () => {
  chromium = await browser();
});
after(() => chromium.close());

/** Waits until something is so. The runner ends a test that waits too long. */
async function eventually(is: () => boolean): Promise<void> {
  for (let tries = 0; !is(); tries += 1) {
    assert.ok(tries < 1000, "it has not become so within 10 s");
    await new Promise((done) => setTimeout(done, 10));
  }
}

type Use = (opened: Opened, on: Mock) => Promise<void>;

async function open(options: Partial<Options>, look: Use, width = 1440) {
  const on = await mock({ dist: DIST, ...options });
  const opened = await tab(chromium, on.url, { width });
  try {
    await opened.page.goto(on.url);
    await settled(opened.page);
    await look(opened, on);
    assert.deepEqual(opened.offences, []);
  } finally {
    await opened.context.close();
    await on.close();
  }
}

test("keys open pages, walk over rows, select them and open them", () =>
  open({}, async ({ page }) => {
    await page.keyboard.press("g");
    await page.keyboard.press("q");
    await page.waitForFunction(() => location.hash === "#/queues");
    await settled(page);
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    await page.keyboard.press("k");
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => location.hash === "#/queues/billing");
    await goTo(page, "#/queues/mail?state=dead");
    await page.keyboard.press("j");
    await page.keyboard.press("x");
    await page.waitForSelector(".selected:has-text('1 task selected')");
    await page.keyboard.press("?");
    await page.waitForSelector("dialog[open] >> text=Select the row");
  }));

test("the palette finds what the server finds, and follows no address outside of the page", () =>
  open({}, async ({ page }) => {
    await page.keyboard.press("/");
    await page.keyboard.type("bill");
    await page.waitForSelector("[role=option]:has-text('billing')");
    const options = await page.locator("[role=option]").allInnerTexts();
    assert.deepEqual(await faults(page), []);
    assert.ok(!options.some((text) => text.includes("node-1:411")), "its address is javascript:");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => location.hash.startsWith("#/queues/billing"));
    await page.keyboard.press("Control+k");
    await page.waitForSelector("dialog.palette[open]");
    await page.keyboard.press("Escape");
    await page.waitForSelector("dialog.palette", { state: "detached" });
  }));

test("the pages and the acts of queues named . and .. are theirs", () =>
  open({}, async ({ page }, on) => {
    for (const [index, queue] of [".", ".."].entries()) {
      on.store.queues.push({ ...on.store.queues[index]!, queue, paused: null });
      await goTo(page, `#/queues/${queue}?state=ready`);
      assert.equal(await page.locator(".banner.is-problem").count(), 0);
      assert.ok((await page.locator("tbody tr").count()) > 0, "its tasks are listed");
      await page.locator("tbody tr a").first().click();
      await page.waitForSelector("h1 >> text=/./");
      assert.equal(await page.locator(".banner.is-problem").count(), 0);
      await goTo(page, `#/queues/${queue}`);
      await page.click("button:has-text('Pause')");
      await page.click("dialog[open] button:has-text('Pause')");
      await eventually(() => on.store.queues.at(-1)?.paused !== null);
    }
  }));

const CARDS = [
  ...["limits", "lanes", "schedules", "groups", "shards", "sources", "dispensers", "audit"],
  ...["queues/mail?state=dead", "queues/mail?state=working", "queues/mail?view=history"],
];

test("a phone shows each value of a row, and what can be done with it", () =>
  open(
    {},
    async ({ page }) => {
      for (const name of CARDS) {
        await goTo(page, `#/${name}`);
        const unseen = await page.evaluate(() => {
          const rows = [...document.querySelectorAll("main tbody tr")].slice(0, 4);
          const cells = rows.flatMap((row) => [...row.querySelectorAll("td:not(.is-none)")]);
          const isSeen = (cell: Element) => {
            cell.scrollIntoView({ block: "center" });
            const { left, right, top, bottom, width } = cell.getBoundingClientRect();
            const there = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
            const isOnTop = there !== null && (cell.contains(there) || there.contains(cell));
            return width > 0 && left >= 0 && right <= innerWidth && isOnTop;
          };
          const missing = cells.filter((cell) => !isSeen(cell));
          return { cells: cells.length, missing: missing.map((cell) => cell.textContent) };
        });
        assert.ok(unseen.cells > 0, name);
        assert.deepEqual(unseen.missing, [], name);
      }
      await goTo(page, "#/limits");
      const rate = page.locator("tbody td", { hasText: "100/s" });
      assert.equal(await rate.getAttribute("data-head"), "Rate");
    },
    390,
  ));

test("the focus stays on a row while rows move", () =>
  open({}, async ({ page }, on) => {
    await goTo(page, "#/queues?sort=ready");
    await page.keyboard.press("j");
    // Not every browser can move an element that has the focus.
    await page.evaluate("delete Element.prototype.moveBefore");
    const before = await page.evaluate(
      () => document.activeElement?.querySelector("a")?.textContent,
    );
    const first = await page.locator("tbody tr a").first().innerText();
    const { queues } = on.store;
    queues.push(...queues.splice(0, 1));
    await page.waitForFunction(
      (name) => document.querySelector("tbody tr a")?.textContent !== name,
      first,
    );
    const after = await page.evaluate(
      () => document.activeElement?.querySelector("a")?.textContent,
    );
    assert.equal(after, before);
  }));

test("a lost stream is told, and is opened again when the server is back", () =>
  open({}, async ({ page }, on) => {
    await page.waitForSelector(".live.is-live:has-text('Live')", { state: "attached" });
    on.refuseStreams(true);
    on.dropStreams();
    await page.waitForSelector(".live.is-lost:has-text('Next attempt in')");
    await page.waitForSelector(".banner:has-text('What you see may be old')");
    on.refuseStreams(false);
    await page.waitForSelector(".live.is-live");
    await page.waitForSelector(".banner", { state: "detached" });
  }));

test("a page has one stream, and none while nobody sees it", () =>
  open({}, async ({ page }, on) => {
    for (const href of ["#/queues", "#/queues/mail", "#/queues/billing", "#/workers"])
      await goTo(page, href);
    await page.waitForSelector(".live.is-live:has-text('Live')");
    await eventually(() => on.streams() === 1);
    const hide = (is: boolean) =>
      page.evaluate((hidden) => {
        Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
      }, is);
    await hide(true);
    await page.waitForSelector(".live:has-text('the tab is hidden')");
    await eventually(() => on.streams() === 0);
    await hide(false);
    await eventually(() => on.streams() === 1);
  }));

test("filters are part of the address, and go on scanning when asked", () =>
  open({}, async ({ page }) => {
    await goTo(page, "#/queues/mail?state=ready");
    await page.getByLabel("Text").fill("welcome");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => location.hash.includes("text=welcome"));
    await page.waitForSelector("text=/scanned 256 of 1.2k/");
    await page.click("button:has-text('Go on')");
    // One press asks until 50 are found, of which a third of the tasks are,
    await page.waitForSelector("text=/67 found, scanned 1,024/");
    await page.getByLabel("Text").fill("in no task");
    await page.keyboard.press("Enter");
    await page.waitForSelector("text=/scanned 256 of 1.2k/");
    await page.click("button:has-text('Go on')");
    // or until 2,000 tasks were looked at.
    await page.waitForSelector("text=/0 found, scanned 2,304/");
    await page.getByLabel("Older than").fill("soon");
    await page.keyboard.press("Enter");
    await page.waitForSelector("[role=alert]:has-text('Write an age')");
  }));

test("the colours can be chosen and stay chosen", () =>
  open({}, async ({ page }) => {
    const button = page.locator("[aria-label^='Colours']");
    await button.click();
    await button.click();
    assert.equal(await page.evaluate(() => document.documentElement.dataset["theme"]), "dark");
    await page.reload();
    await settled(page);
    assert.equal(await page.evaluate(() => document.documentElement.dataset["theme"]), "dark");
  }));

test("a large integer in a payload keeps its digits", () =>
  open({}, async ({ page }) => {
    await goTo(page, "#/tasks/mail/dead-1");
    await page.waitForSelector("pre.code >> text=9007199254740993123");
    await page.waitForSelector("pre.code >> text=7e2");
  }));

test("each chart has a table with its numbers", () =>
  open({}, async ({ page }) => {
    await page.click("button[aria-label='Succeeded as a table']");
    await page.waitForSelector("dialog[open] tbody tr");
    assert.equal(await page.locator("dialog[open] tbody tr").count(), 60);
  }));

test("an empty store shows what to do", () =>
  open({ mode: "empty" }, async ({ page }) => {
    await goTo(page, "#/queues");
    await page.waitForSelector("text=No queue yet");
    await goTo(page, "#/workers");
    await page.waitForSelector("text=No process runs a worker");
    await goTo(page, "#/operations");
    await page.waitForSelector("text=retry a group on the page of failures");
    await goTo(page, "#/dispensers");
    await page.waitForSelector("text=Add items to one to see it");
  }));

test("a process whose lease is over is marked, and an idle one that tells rarely is not", () =>
  open({}, async ({ page }) => {
    await goTo(page, "#/workers");
    await page.waitForSelector(".process:has-text('node-5') .tag:has-text('lost')");
    assert.equal(await page.locator(".process .tag:has-text('lost')").count(), 1);
  }));

test("data is not called live while the server can't reach Redis", () =>
  open({}, async ({ page }, on) => {
    await page.waitForSelector(".live.is-live:has-text('Live')", { state: "attached" });
    on.store.redisWentAt = Date.now();
    await page.waitForSelector(".live.is-old", { state: "attached" });
    await page.waitForSelector('.banner:has-text("The console can\'t reach Redis. What you see")');
    on.store.redisWentAt = undefined;
    await page.waitForSelector(".live.is-live", { state: "attached" });
  }));

test("a queue that the reader may not see is refused, and nothing is called disconnected", () =>
  open({}, async ({ page }, on) => {
    await page.evaluate((to) => {
      location.hash = to;
    }, `#/queues/${FORBIDDEN}`);
    await page.waitForSelector("[role=alert]:has-text('is not among your queues')");
    assert.equal(await page.locator("button:has-text('Try again')").count(), 0);
    await eventually(() => on.streams() === 1);
    await page.waitForSelector(".live.is-live:has-text('Live')", { state: "attached" });
  }));

test("a dead end is not shown like a success, and spans are told as what they are", () =>
  open({}, async ({ page }) => {
    await goTo(page, "#/tasks/mail/dead-1");
    const last = page.locator(".timeline li").last();
    await last.getByText("Ended").waitFor();
    assert.match((await last.getAttribute("class")) ?? "", /at-failed/);
    await page.locator(".timeline").getByText("later").first().waitFor();
  }));

test("a queue that can't be read has no numbers, and a search names it", () =>
  open({}, async ({ page }) => {
    await goTo(page, "#/queues?text=tenant-acme");
    const row = page.locator("tbody tr", { hasText: "can't be read" });
    const cells = await row.locator("td").allInnerTexts();
    assert.deepEqual([...new Set(cells.slice(1))], ["–"]);
    await goTo(page, "#/search?q=order");
    await page.waitForSelector("[role=status]:has-text('may be missing: tenant-acme')");
  }));

test("a task that waits for a slot or a limit shows when it was submitted", () =>
  open({}, async ({ page }, on) => {
    if (on.store.queues[0]) on.store.queues[0].counts.blocked = 7;
    for (const state of ["ready", "blocked"]) {
      await goTo(page, `#/queues/mail?state=${state}`);
      await page.waitForSelector("th:has-text('Submitted')");
      await page.waitForSelector("tbody td:has-text('ago')");
      assert.equal(await page.locator("th:has-text('Since')").count(), 0);
    }
  }));

test("schedules and groups tell times as spans, and their ids can be opened or copied", () =>
  open({}, async ({ page, context }, on) => {
    await context.grantPermissions(["clipboard-read", "clipboard-write"]);
    await goTo(page, "#/schedules");
    const row = page.locator("tbody tr").first();
    const next = row.getByText("in 4 h", { exact: true });
    assert.match((await next.getAttribute("title")) ?? "", / UTC$/);
    assert.equal(await row.getByText(/\dT\d/).count(), 0, "no time is written for programs");
    await row
      .getByRole("link", { name: /^[0-9a-f-]{36}$/ })
      .first()
      .click();
    await page.waitForFunction(() => location.hash.startsWith("#/tasks/mail/"));
    await goTo(page, "#/groups");
    await page.locator("tbody button[aria-label='Copy the id']").first().click();
    await page.waitForFunction(async () =>
      /^mail\/[0-9a-f-]{36}$/.test(await navigator.clipboard.readText()),
    );
    assert.equal(on.store.acts.length, 0);
  }));

test("a search for the id of a task opens the task, and back leads to the page before", () =>
  open({}, async ({ page }) => {
    const uuid = "019aab0c-0000-7000-9000-c0ffee42d00d";
    await goTo(page, "#/queues");
    await goTo(page, "#/search");
    await page.getByRole("searchbox").fill(uuid);
    await page.waitForFunction((to) => location.hash === `#/tasks/mail/${to}`, uuid);
    await page.waitForSelector(".timeline");
    await page.goBack();
    await page.waitForFunction(() => location.hash === "#/queues");
    await page.keyboard.press("/");
    await page.keyboard.type(`mail/${uuid}`);
    await page.keyboard.press("Enter");
    await page.waitForFunction((to) => location.hash === `#/tasks/mail/${to}`, uuid);
  }));

test("times name their zone", () =>
  open({}, async ({ page }) => {
    await page
      .locator(".chart-foot")
      .getByText(/^\d\d:\d\d UTC$/)
      .first()
      .waitFor();
    await goTo(page, "#/tasks/mail/dead-1");
    await page
      .locator(".timeline")
      .getByText(/^on \d{4}-\d\d-\d\d, UTC$/)
      .first()
      .waitFor();
    await goTo(page, "#/audit");
    const title = await page.locator("tbody time").first().getAttribute("title");
    assert.match(title ?? "", /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} UTC$/);
  }));

test("a history without a day asks for one", () =>
  open({}, async ({ page }) => {
    await goTo(page, "#/queues/mail?view=history");
    await page.locator("input[type=date]").fill("");
    await page.waitForSelector(".empty:has-text('Choose a day')");
    assert.equal(await page.locator(".waiting").count(), 0);
  }));
