// What a page keeps of a reader who leaves, or who may do other things than before.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, Page, Route } from "playwright-core";
import type { Session } from "../../src/api/types";
import { mock, type Mock, type Options } from "../mock/server";
import { changed } from "./console";
import { browser, DIST, faults, goTo, type Opened, settled, tab } from "./kit";

let chromium: Browser;
before(async () => {
  chromium = await browser();
});
after(() => chromium.close());

const SECRET = "merger-with-globex";

type Use = (opened: Opened, on: Mock, options: Options) => Promise<void>;

/** Opens a console whose first queue only the first reader may see. */
async function open(given: Partial<Options>, use: Use) {
  const options: Options = { dist: DIST, ...given };
  const on = await mock(options);
  if (on.store.queues[0]) on.store.queues[0].queue = SECRET;
  const opened = await tab(chromium, on.url);
  try {
    await opened.page.goto(on.url);
    await use(opened, on, options);
    assert.deepEqual(opened.offences, []);
  } finally {
    await opened.context.close();
    await on.close();
  }
}

async function signIn(page: Page): Promise<void> {
  await page.fill("#token", "right");
  await page.keyboard.press("Enter");
}

/** Marks the page, so that it shows whether it was opened again. */
const mark = (page: Page) => page.evaluate("window.isMarked = true");
const isMarked = (page: Page) => page.evaluate("window.isMarked === true");

/** Notes from now on whether the secret is ever on the page. */
async function watchForSecret(page: Page): Promise<() => Promise<unknown>> {
  await page.evaluate((secret) => {
    const look = () => {
      if (document.body.textContent?.includes(secret)) Object.assign(window, { isTold: true });
    };
    new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
  }, SECRET);
  return () => page.evaluate("window.isTold === true");
}

test("who signs in after somebody else sees nothing of what that one has seen", () =>
  open({ token: "right" }, async ({ page }, on) => {
    await signIn(page);
    await page.waitForSelector(`main a:has-text('${SECRET}')`);
    await page.route("**/resume", (route) =>
      route.fulfill({ status: 409, json: { error: "refused", message: `${SECRET} waits` } }),
    );
    await goTo(page, "#/queues/reports");
    await page.click("button:has-text('Resume')");
    await page.waitForSelector(".note.is-problem");
    await goTo(page, "#/overview");
    await page.click("[aria-label='Sign out']");
    await page.waitForSelector("#token");
    // The next one sees no queue, and has to ask for each overview.
    on.store.queues = [];
    on.refuseStreams(true);
    const isTold = await watchForSecret(page);
    await signIn(page);
    await page.waitForSelector("text=None. Each queue is served and keeps up.");
    assert.equal(await isTold(), false);
    assert.equal(await page.locator(".note").count(), 0);
  }));

test("a session that has ended asks for a token on a page that has kept nothing", () =>
  open({ token: "right" }, async ({ page, context }) => {
    await signIn(page);
    await settled(page);
    await mark(page);
    await context.clearCookies();
    await goTo(page, "#/workers").catch(() => undefined);
    await page.waitForSelector("#token");
    assert.equal(await isMarked(page), false);
  }));

test("a call that is refused to a reader who is signed in leaves the page as it is", () =>
  open({}, async ({ page }) => {
    await settled(page);
    await mark(page);
    await page.route("**/api/v1/processes*", (route) =>
      route.fulfill({ status: 401, json: { error: "unauthorized", message: "not this one" } }),
    );
    const asked = page.waitForResponse("**/api/v1/session");
    await goTo(page, "#/workers");
    await asked;
    await page.waitForSelector("[role=alert]:has-text('not this one')");
    assert.equal(await isMarked(page), true);
  }));

test("a page that is somebody else's now is opened again", () =>
  open({}, async ({ page }, on, options) => {
    await page.waitForSelector(`main a:has-text('${SECRET}')`);
    await mark(page);
    options.identity = "bo";
    on.store.queues = [];
    on.dropStreams();
    await page.waitForSelector(".who:has-text('bo')");
    assert.equal(await isMarked(page), false);
    await page.waitForSelector("text=None. Each queue is served and keeps up.");
  }));

test("who loses a role is no longer offered what it allows, and keeps the page", () =>
  open({ role: "admin" }, async ({ page }, on, options) => {
    await goTo(page, `#/queues/${SECRET}?state=dead`);
    await page.waitForSelector("main button:has-text('Delete')");
    await mark(page);
    options.role = "viewer";
    on.dropStreams();
    await page.waitForSelector(".who:has-text('viewer')");
    await page.waitForSelector("main button:has-text('Delete')", { state: "detached" });
    assert.equal(await isMarked(page), true);
  }));

test("a page that is seen again learns who reads it", () =>
  open({ role: "admin" }, async ({ page }, _, options) => {
    await settled(page);
    await page.waitForSelector(".who:has-text('admin')");
    const hide = (is: boolean) =>
      page.evaluate((hidden) => {
        Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
      }, is);
    await hide(true);
    options.role = "operator";
    await hide(false);
    await page.waitForSelector(".who:has-text('operator')");
  }));

test("a console that takes no token asks nobody for one, also at the first visit", () =>
  open({}, async ({ page }, on) => {
    const json = { error: "unauthorized", message: "sign in to use the console", auth: "header" };
    // The page that is open would open itself again, because it is refused now.
    await page.goto("about:blank");
    await page.route("**/api/v1/**", (route) => route.fulfill({ status: 401, json }));
    await page.addInitScript(() => sessionStorage.clear());
    await page.goto(on.url);
    await page.waitForSelector("text=This console takes no token.");
    assert.equal(await page.locator("#token").count(), 0);
  }));

test("a reader whom a proxy no longer names is not asked for a token", () =>
  open({}, async ({ page }) => {
    await changed<Session>(page, "session", (of) => ({ ...of, auth: "header" }));
    await page.reload();
    await page.waitForSelector(".who:has-text('ann')");
    const unauthorized = { error: "unauthorized", message: "sign in to use the console" };
    const refuse = (route: Route) => route.fulfill({ status: 401, json: unauthorized });
    await page.route("**/api/v1/**", refuse);
    await page.evaluate(() => {
      location.hash = "#/workers";
    });
    await page.waitForSelector("text=This console takes no token.");
    assert.equal(await page.locator("#token").count(), 0);
    assert.deepEqual(await faults(page), []);
    await page.unroute("**/api/v1/**", refuse);
    await page.click("button:has-text('Open it again')");
    await page.waitForSelector(".process");
  }));
