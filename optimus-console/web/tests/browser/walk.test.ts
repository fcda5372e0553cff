// Walks over every page. With CONSOLE_URL it walks over that server (and signs in with
// CONSOLE_TOKEN), else over the mock server with ordinary and with hostile texts.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { mock, type Mock } from "../mock/server";
import { browser, DIST, faults, goTo, type Look, overflow, settled, tab } from "./kit";
import { routes } from "./routes";

const REAL = process.env["CONSOLE_URL"];
const TOKEN = process.env["CONSOLE_TOKEN"];
/** The short form looks at fewer combinations. */
const isShort = process.env["CONSOLE_SHORT"] !== undefined;

const LOOKS: Look[] = [
  { width: 1440, dark: false },
  { width: 390, dark: true },
  ...(isShort ? [] : [{ width: 1440, dark: true }, { width: 390, dark: false }]),
];

let chromium: Browser;
const mocks: Mock[] = [];
before(async () => {
  chromium = await browser();
});
after(async () => {
  await chromium.close();
  await Promise.all(mocks.map((one) => one.close()));
});

async function walk(url: string, look: Look, isHostile: boolean): Promise<string[]> {
  const headers: Record<string, string> = TOKEN ? { authorization: `Bearer ${TOKEN}` } : {};
  const all = await routes(url, headers);
  assert.ok(all.length > 8, "there are pages to look at");
  const { page, context, offences } = await tab(chromium, url, look);
  await page.goto(url);
  if (TOKEN) {
    await page.fill("#token", TOKEN);
    await page.click("text=Sign in");
  }
  await settled(page);
  const found: string[] = [];
  for (const { name, href } of all) {
    await goTo(page, href);
    const at = `${name} at ${look.width} px, ${look.dark ? "dark" : "light"}`;
    const wide = await overflow(page);
    if (wide > 0) found.push(`${at}: ${wide} px too wide`);
    if ((await page.title()).includes("owned")) found.push(`${at}: a script of the data ran`);
    if (!(await page.title()).endsWith("Optimus")) found.push(`${at}: its title is ${await page.title()}`);
    if (await page.locator(".banner.is-problem[role=alert]").count()) {
      found.push(`${at}: ${await page.locator(".banner.is-problem[role=alert]").first().innerText()}`);
    }
    if (isHostile) {
      const images = await page.locator("main img, main script, main iframe").count();
      if (images > 0) found.push(`${at}: data became an element`);
    }
    // Offences are counted before axe runs, which adds its own elements.
    found.push(...offences.splice(0).map((offence) => `${at}: ${offence}`));
    found.push(...(await faults(page)).map((fault) => `${at}: ${fault}`));
    offences.length = 0;
  }
  await context.close();
  return found;
}

for (const look of LOOKS) {
  const name = `${look.width} px, ${look.dark ? "dark" : "light"}`;
  test(`every page is whole at ${name}`, async () => {
    let url = REAL;
    if (url === undefined) {
      const fine = await mock({ dist: DIST, mount: "/a/b/c/" });
      mocks.push(fine);
      url = fine.url;
    }
    assert.deepEqual(await walk(url, look, false), []);
  });

  test(`hostile texts are shown as text at ${name}`, { skip: REAL !== undefined }, async () => {
    const hostile = await mock({ dist: DIST, mode: "hostile" });
    mocks.push(hostile);
    assert.deepEqual(await walk(hostile.url, look, true), []);
  });
}
