import { test } from "node:test";
import { mock } from "../mock/server";
import { browser, DIST, goTo, settled, tab } from "../browser/kit";
test("x", async () => {
  const c = await browser();
  const fine = await mock({ dist: DIST });
  let o = await tab(c, fine.url, {});
  await o.page.goto(fine.url); await settled(o.page);
  await o.page.keyboard.press("/");
  await o.page.waitForSelector("dialog[open]");
  await o.page.keyboard.type("bill");
  await o.page.waitForTimeout(1500);
  await o.page.screenshot({ path: "/tmp/web/palette.png" });
  console.log(await o.page.evaluate(() => document.activeElement?.outerHTML.slice(0, 200)));
  await o.page.keyboard.press("Escape");
  await goTo(o.page, "#/queues/mail?state=dead");
  await o.page.click("button:has-text('Retry all')");
  await o.page.waitForSelector(".big-count b");
  await o.page.screenshot({ path: "/tmp/web/bulk.png" });
  await o.context.close();
  const h = await mock({ dist: DIST, mode: "hostile" });
  o = await tab(c, h.url, { width: 390, dark: true });
  await o.page.goto(h.url); await settled(o.page);
  await goTo(o.page, "#/queues/mail");
  console.log(await o.page.evaluate(() => {
    const all = [...document.querySelectorAll("#app *")].filter((e) => e.getBoundingClientRect().right > 391 && !e.closest(".scroll") && !e.closest(".tabs"));
    return all.slice(0, 12).map((e) => `${e.tagName}.${e.className} ${Math.round(e.getBoundingClientRect().right)}`).join("\n");
  }));
  await o.page.screenshot({ path: "/tmp/web/hostile-queue-390.png", fullPage: true });
  await goTo(o.page, "#/overview");
  await o.page.screenshot({ path: "/tmp/web/hostile-overview-390.png", fullPage: true });
  await o.context.close();
  o = await tab(c, h.url, {});
  await o.page.goto(h.url); await settled(o.page);
  for (const p of ["overview", "queues", "queues/mail?state=dead", "tasks/mail/dead-1", "failures", "workers"]) {
    await goTo(o.page, `#/${p}`);
    await o.page.screenshot({ path: `/tmp/web/hostile-${p.replace(/\W/g, "_")}.png` });
  }
  await c.close(); await fine.close(); await h.close();
});
