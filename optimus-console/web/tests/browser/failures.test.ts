// The groups of failures, and those that no worker has written.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { FailureRow, Overview } from "../../src/api/types";
import { changed, consoles, streamOnce } from "./console";
import { goTo, settled } from "./kit";

const open = consoles();

const lost = (reason: string): FailureRow => ({
  queue: "mail",
  task: "receipt",
  fingerprint: null,
  reason,
  outline: null,
  dead: 1,
  first_ms: Date.now() - 9000,
  last_ms: Date.now() - 9000,
  sample: "mail/01890a5d-ac96-774b-bcce-b302099a8057",
  message: `it was ${reason}`,
});

test("a group of lost tasks says what that means, and is retried by its cause", () =>
  open({}, async ({ page }, on) => {
    await changed<{ rows: FailureRow[] }>(page, "failures*", (of) => ({
      ...of,
      rows: [lost("lost"), ...of.rows],
    }));
    await goTo(page, "#/failures");
    const row = page.locator("tbody tr", { hasText: "it was lost" });
    await row.getByText("Look at its exit code.").waitFor();
    await row.getByText("tasks such as receipt").waitFor();
    assert.equal(await row.getByRole("button", { name: "Delete" }).count(), 1);
    await row.getByRole("button", { name: "Retry" }).click();
    const dialog = page.locator("dialog[open]");
    await dialog.getByText("queue mail, state dead, cause lost").waitFor();
    await dialog.getByText("A retry may end workers again.").waitFor();
    await dialog.getByRole("button", { name: /^Retry .* tasks$/ }).click();
    await dialog.getByText("done").first().waitFor();
    const [counted, confirmed] = on.store.acts;
    const filter = { queue: "mail", state: "dead", cause: "lost" };
    assert.deepEqual(counted?.body, { act: "requeue", filter });
    assert.match(confirmed?.path ?? "", /confirm$/);
  }));

test("a group that no worker has written is not acted on: all tasks of its name would match", () =>
  open({}, async ({ page }, on) => {
    await changed<{ rows: FailureRow[] }>(page, "failures*", ({ rows }) => ({
      rows: [lost("failed"), ...rows],
      rows_left_out: 30,
      queues: 1,
      left_out: 0,
    }));
    await goTo(page, "#/failures");
    const row = page.locator("tbody tr", { hasText: "it was failed" });
    await row.getByText("no worker has written this error").waitFor();
    assert.equal(await row.getByRole("button").count(), 0);
    assert.equal(await row.locator("td.number a").count(), 0);
    const other = page.locator("tbody tr", { hasText: "smtp" }).first();
    assert.equal(await other.getByRole("button").count(), 2);
    assert.match((await other.locator("td.number a").getAttribute("href")) ?? "", /fingerprint=k3/);
    assert.deepEqual(on.store.acts, []);
    await page.getByText("30 further failures not shown").waitFor();
  }));

test("a group whose task is not known is not acted on: tasks of all names would match", () =>
  open({}, async ({ page }) => {
    await changed<{ rows: FailureRow[] }>(page, "failures*", (of) => ({
      ...of,
      rows: of.rows.map((row, index) => (index === 0 ? { ...row, task: null } : row)),
    }));
    await goTo(page, "#/failures");
    const row = page.locator("tbody tr", { hasText: "their name was not read" });
    await row.waitFor();
    assert.equal(await row.getByRole("button").count(), 0);
    assert.equal(await row.locator("td.number a").count(), 1, "the tasks can be looked at");
  }));

test("the failure that an address names is asked for by its fingerprint", () =>
  open({}, async ({ page }) => {
    const asked = page.waitForRequest((request) => request.url().includes("fingerprint=k3Jx9w0"));
    await goTo(page, "#/failures?fingerprint=k3Jx9w0");
    await asked;
    await page.locator("tbody tr").first().waitFor();
    await goTo(page, "#/failures?fingerprint=none");
    await page.getByText("No dead task has this failure.").waitFor();
  }));

test("the overview tells groups without a fingerprint apart, and leads to all failures", () =>
  open({}, async ({ page }) => {
    const change = (of: Overview) => ({ ...of, failures: [lost("lost"), lost("expired")] });
    await changed(page, "overview", change);
    await streamOnce(page, "events*", []);
    await page.reload();
    await settled(page);
    const links = page.locator("section:has(h2:text-is('Failures')) tbody a");
    assert.deepEqual(
      (await links.allInnerTexts()).map((text) => text.split("\n")[0]),
      ["it was lost", "it was expired"],
    );
    assert.equal(await links.first().getAttribute("href"), "#/failures");
  }));
