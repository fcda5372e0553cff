// What operators do, from the click to the server.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import type { Operation, Role } from "../../src/api/types";
import { counted } from "../mock/store";
import { mock, type Mock, type Options } from "../mock/server";
import { browser, DIST, faults, goTo, type Opened, settled, tab } from "./kit";

let chromium: Browser;
before(async () => {
  chromium = await browser();
});
after(() => chromium.close());

async function open(options: Partial<Options>, look: (opened: Opened, on: Mock) => Promise<void>) {
  const on = await mock({ dist: DIST, ...options });
  const opened = await tab(chromium, on.url);
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

const dialog = (page: Page) => page.locator("dialog[open]");

test("a queue is paused with a reason, which everybody sees, and is resumed", () =>
  open({}, async ({ page }, on) => {
    await goTo(page, "#/queues/mail");
    await page.click("button:has-text('Pause')");
    await dialog(page).getByLabel("Reason").fill("smtp is down");
    await dialog(page).getByRole("button", { name: "Pause" }).click();
    await page.waitForSelector(".banner:has-text('by ann, now: smtp is down')");
    assert.deepEqual(on.store.acts[0], {
      path: "queues/mail/pause",
      body: { reason: "smtp is down" },
    });
    await page.click("button:has-text('Resume')");
    await page.waitForSelector("button:has-text('Pause')");
  }));

test("selected tasks are retried and leave the list; updates wait while they are selected", () =>
  open({}, async ({ page }, on) => {
    await goTo(page, "#/queues/mail?state=dead");
    const ids = await page.locator("tbody a.mono").allInnerTexts();
    await page.locator("tbody input[type=checkbox]").nth(0).check();
    await page.locator("tbody input[type=checkbox]").nth(2).check();
    await page.waitForSelector(".live:has-text('rows are selected')");
    await page.locator(".selected button:has-text('Retry')").click();
    await dialog(page).getByRole("button", { name: "Retry" }).click();
    await page.waitForSelector(".note:has-text('2 tasks requeued')");
    const act = on.store.acts[0];
    assert.equal(act?.path, "tasks/act");
    assert.deepEqual(act?.body["ids"], [`mail/${ids[0]}`, `mail/${ids[2]}`]);
    await page.waitForFunction(
      (id) => !document.querySelector("main")?.textContent?.includes(id),
      ids[0] ?? "",
    );
    await page.waitForSelector(".live:has-text('Live')");
  }));

test("an operation is counted, confirmed with the count, and followed to its end", () =>
  open({}, async ({ page }, on) => {
    await goTo(page, "#/queues/mail?state=dead");
    await page.click("button:has-text('Retry all')");
    const matched = on.store.queues[0]?.counts.dead ?? 0;
    const button = dialog(page).getByRole("button", { name: `Retry ${matched} tasks` });
    await button.waitFor();
    assert.ok(
      !on.store.acts.some((act) => act.path.endsWith("confirm")),
      "nothing has changed yet",
    );
    assert.equal(await dialog(page).locator("tbody tr").count(), 20, "some of the tasks are shown");
    assert.deepEqual(await faults(page), []);
    await dialog(page).getByLabel("Reason").fill("payments are up");
    await button.click();
    await dialog(page).getByText(`${matched} of ${matched} done`).waitFor();
    const confirmed = on.store.acts.find((act) => act.path.endsWith("confirm"));
    assert.deepEqual(confirmed?.body, { expect: matched, reason: "payments are up" });
    await dialog(page).getByRole("button", { name: "Close" }).last().click();
    await page.waitForSelector("text=No dead task.");
  }));

test("an operation that nobody confirms is not left behind", () =>
  open({}, async ({ page }, on) => {
    await goTo(page, "#/failures");
    await page.locator("tbody button:has-text('Retry')").first().click();
    await dialog(page)
      .getByRole("button", { name: /^Retry .* tasks$/ })
      .waitFor();
    await page.keyboard.press("Escape");
    await dialog(page).waitFor({ state: "detached" });
    await page.waitForFunction(() => document.activeElement?.textContent?.startsWith("Retry"));
    assert.equal(on.store.operations[0]?.state, "cancelled");
    const filter = on.store.operations[0]?.filter;
    assert.equal(filter?.state, "dead");
    assert.match(filter?.fingerprint ?? "", /^k3Jx9w/);
  }));

test("a viewer sees no act, an operator none that deletes", async () => {
  const acts = "main button:has-text('Retry all'), main button:has-text('Pause'), main .check";
  await open({ role: "viewer" }, async ({ page }) => {
    await goTo(page, "#/queues/mail?state=dead");
    assert.equal(await page.locator(acts).count(), 0);
  });
  await open({ role: "operator" }, async ({ page }) => {
    await goTo(page, "#/queues/mail?state=dead");
    assert.ok((await page.locator(acts).count()) > 0);
    assert.equal(await page.locator("main button:has-text('Delete')").count(), 0);
  });
});

test("a reader without a session signs in, a wrong token is told, and signing out ends it", async () => {
  const on = await mock({ dist: DIST, token: "right" });
  const { page, context, offences } = await tab(chromium, on.url);
  await page.goto(on.url);
  await page.fill("#token", "wrong");
  await page.keyboard.press("Enter");
  await page.waitForSelector("[role=alert]:has-text('This token is not known')");
  assert.deepEqual(await faults(page), []);
  await page.fill("#token", "right");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".tiles");
  await page.click("[aria-label='Sign out']");
  await page.waitForSelector("#token");
  assert.deepEqual(offences, []);
  await context.close();
  await on.close();
});

test("a process is asked to use other numbers of slots", () =>
  open({}, async ({ page }, on) => {
    await goTo(page, "#/workers");
    await page.locator(".process button:has-text('Slots')").first().click();
    await dialog(page).getByLabel("Slots", { exact: true }).fill("12");
    await dialog(page).getByRole("button", { name: "Set the slots" }).click();
    await page.waitForSelector(".note");
    assert.deepEqual(on.store.acts[0]?.body, { act: "slots", slots: 12 });
  }));

test("a limit is set, changed and removed, each time with a question and a reason", () =>
  open({ role: "operator" }, async ({ page }, on) => {
    await goTo(page, "#/limits");
    await page.locator("tbody tr", { hasText: "limit stripe" }).getByText("ann (bank").waitFor();
    await page.click("button:has-text('Set a limit')");
    const asked = dialog(page);
    await asked.getByLabel("Queue").fill("mail");
    await asked.getByLabel("Applies to").selectOption({ label: "tasks of a name" });
    await asked.getByLabel("Name of the task").fill("welcome");
    await asked.getByLabel("Rate").fill("5");
    await asked.getByRole("button", { name: "Set the limit" }).click();
    await asked.locator("[role=alert]:has-text('such as 100/s')").waitFor();
    assert.deepEqual(on.store.acts, [], "nothing was sent");
    await asked.getByLabel("Rate").fill("5/m");
    await asked.getByLabel("At once").fill("2");
    await asked.getByText("At most 5 start a minute. At most 2 run at once").waitFor();
    assert.deepEqual(await faults(page), []);
    await asked.getByLabel("Reason").fill("smtp asks");
    await asked.getByRole("button", { name: "Set the limit" }).click();
    await asked.waitFor({ state: "detached" });
    const row = page.locator("tbody tr", { hasText: "limit stripe" });
    await row.getByRole("button", { name: "Set" }).click();
    assert.equal(await asked.getByLabel("Burst").inputValue(), "10");
    await asked.getByLabel("Rate").fill("50/s");
    await page.keyboard.press("Enter");
    await asked.waitFor({ state: "detached" });
    await row.getByRole("button", { name: "Remove" }).click();
    await asked.getByText("What the code of the tasks declares applies again.").waitFor();
    await asked.getByRole("button", { name: "Remove the limit" }).click();
    await asked.waitFor({ state: "detached" });
    const path = "things/limits/act";
    const limit = { rate: "5/m", max_working: 2 };
    const changed = { rate: "50/s", burst: 10, max_working: 8 };
    const stripe = { queue: "mail", name: "limit:stripe" };
    assert.deepEqual(on.store.acts, [
      {
        path,
        body: { queue: "mail", name: "task:welcome", act: "set", limit, reason: "smtp asks" },
      },
      { path, body: { ...stripe, act: "set", limit: changed } },
      { path, body: { ...stripe, act: "remove" } },
    ]);
  }));

test("a viewer can't set a limit", () =>
  open({ role: "viewer" }, async ({ page }) => {
    await goTo(page, "#/limits");
    await page.waitForSelector("tbody tr:has-text('limit stripe')");
    assert.equal(await page.locator("main button:has-text('et')").count(), 0);
  }));

test("an operation that somebody else has counted is confirmed with its count and its age", () =>
  open({}, async ({ page }, on) => {
    on.store.operations = [counted(Date.now(), 3_600_000)];
    await goTo(page, "#/operations");
    const row = page.locator(".operation-row").first();
    await row.getByText("212 tasks match; nothing has changed yet").waitFor();
    await row.getByText("Counted by cli-bo, 1 h ago").waitFor();
    await row.getByRole("button", { name: "Confirm" }).click();
    const asked = dialog(page);
    await asked
      .getByText("Cancel tasks of all queues, in ready or delayed, task receipt")
      .waitFor();
    await asked.getByText("Counted by cli-bo, 1 h ago").waitFor();
    await asked.getByText("The tasks don't run.").waitFor();
    assert.deepEqual(await faults(page), []);
    await asked.getByLabel("Reason").fill("OPS-7");
    await asked.getByRole("button", { name: "Cancel 212 tasks" }).click();
    await asked.getByText("of 212 done").waitFor();
    assert.deepEqual(on.store.acts, [
      { path: "operations/op9/confirm", body: { expect: 212, reason: "OPS-7" } },
    ]);
    await asked.getByRole("button", { name: "Close" }).last().click();
    await page.waitForFunction(() => document.querySelector("dialog[open]") === null);
    assert.equal(await row.getByRole("button", { name: "Confirm" }).count(), 0);
  }));

test("an operation is confirmed by those who may act on its tasks, and within a day", async () => {
  const buttons = (page: Page) => page.locator("main button:has-text('Confirm')");
  const look = async (role: Role, change: Partial<Operation>, expected: number) =>
    open({ role }, async ({ page }, on) => {
      on.store.operations = [{ ...counted(Date.now(), 3_600_000), ...change }];
      await goTo(page, "#/operations");
      await page.waitForSelector("text=Counted by cli-bo");
      assert.equal(await buttons(page).count(), expected, `${role} ${JSON.stringify(change)}`);
    });
  await look("viewer", {}, 0);
  await look("operator", {}, 1);
  await look("operator", { act: "delete" }, 0);
  await look("admin", { act: "delete" }, 1);
  await look("admin", { matched: 0 }, 0);
  await open({}, async ({ page }, on) => {
    on.store.operations = [counted(Date.now(), 90_000_000)];
    await goTo(page, "#/operations");
    await page.waitForSelector("text=It was counted more than a day ago");
    assert.equal(await buttons(page).count(), 0);
  });
});

test("a schedule is paused with a reason, which is shown beside who has paused it", () =>
  open({}, async ({ page }, on) => {
    await goTo(page, "#/schedules");
    await page.locator("tr:has-text('nightly report') button:has-text('Pause')").click();
    await dialog(page).getByText("It submits no task until it is resumed.").waitFor();
    await dialog(page).getByLabel("Reason").fill("the quarter ends");
    await dialog(page).getByRole("button", { name: "Pause" }).click();
    await page.waitForSelector(".note");
    const { body } = on.store.acts[0] ?? {};
    assert.deepEqual(body, {
      queue: "mail",
      name: "schedules-0",
      act: "pause",
      reason: "the quarter ends",
    });
    const paused = page.locator("tr:has-text('digest')");
    await paused.locator(".state:has-text('paused')").waitFor();
    await paused.getByText("by ann (warehouse moves, OPS-412)").waitFor();
  }));

test("a cancel of many tasks can be undone: they are counted, and requeued once that is confirmed", () =>
  open({}, async ({ page }, on) => {
    const cancelled = { state: "done", done: 212, left: 0, can_undo: true } as const;
    const queue = { queue: "mail", states: ["ready"] };
    on.store.operations = [{ ...counted(Date.now(), 60_000), ...cancelled, filter: queue }];
    await goTo(page, "#/operations");
    await page.locator(".operation-row button:has-text('Undo')").click();
    await dialog(page).getByText("wait for the same time again").waitFor();
    await dialog(page)
      .getByRole("button", { name: /^Retry .* tasks$/ })
      .click();
    await dialog(page).getByText("done").first().waitFor();
    const [undo, confirm] = on.store.acts.map((act) => act.path);
    assert.equal(undo, "operations/op9/undo");
    assert.match(confirm ?? "", /confirm$/);
  }));
