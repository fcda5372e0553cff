// The tables of things that the server describes.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Fact, ThingRow } from "../../src/api/types";
import { changed, consoles } from "./console";
import { goTo } from "./kit";

const open = consoles();

const facts = (...of: [string, string][]): Fact[] =>
  of.map(([name, value]) => ({ name, value, kind: "text" }));

test("a lane that a dead task keeps is shown as blocked, and names the task", () =>
  open({}, async ({ page }) => {
    await goTo(page, "#/lanes");
    const row = page.locator("tbody tr").filter({ hasText: "tenant-globex" });
    await row.locator(".state.is-blocked").waitFor();
    await row.getByText("by dead tasks: requeue or delete them").waitFor();
    const task = row.locator("a[href*='task']").last();
    assert.match((await task.getAttribute("href")) ?? "", /mail/);
  }));

const numbered = (noun: string, many: number, value: (index: number) => string) =>
  Array.from({ length: many }, (_, index): [string, string] => [`${noun} ${index}`, value(index)]);

test("each slice's error and each shard's holder is found, however many there are", () =>
  open({}, async ({ page }) => {
    const more = (...of: [string, string][]) => {
      return ({ rows }: { rows: ThingRow[] }) => ({
        rows: rows.map((row) => ({ ...row, facts: [...row.facts, ...facts(...of)] })),
        next: null,
      });
    };
    await changed(page, "sources*", more(...numbered("slice", 9, (of) => `no table bills_${of}`)));
    await goTo(page, "#/sources");
    const row = page.locator("tbody tr").first();
    await row.getByText("no table bills_0").waitFor();
    assert.equal(await row.getByText("no table bills_8").isVisible(), false);
    await row.getByText("and 5 more").click();
    await row.getByText("no table bills_8").waitFor();
    await changed(page, "shards*", more(...numbered("shard", 16, (of) => `node-${of} on vm`)));
    await goTo(page, "#/shards");
    await page.locator("tbody tr").first().getByText("and").click();
    await page.locator("tbody tr").first().getByText("node-15 on vm").waitFor();
  }));

test("a schedule that nobody ticks is removed, with a question and a reason", () =>
  open({}, async ({ page }, on) => {
    await goTo(page, "#/schedules");
    const remove = (name: string) =>
      page.locator("tbody tr", { hasText: name }).getByRole("button", { name: "Remove" });
    assert.equal(await remove("hourly sync").count(), 0);
    await remove("cleanup").click();
    const dialog = page.locator("dialog[open]");
    await dialog.getByText("Remove this schedule?").waitFor();
    await dialog.getByText("This can't be undone.").waitFor();
    await dialog.getByLabel("Reason").fill("OPS-9");
    await dialog.getByRole("button", { name: "Remove the schedule" }).click();
    await dialog.waitFor({ state: "detached" });
    const body = { queue: "mail", name: "schedules-2", act: "remove", reason: "OPS-9" };
    assert.deepEqual(on.store.acts, [{ path: "things/schedules/act", body }]);
  }));
