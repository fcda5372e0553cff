// Walks over every page. With CONSOLE_URL it walks over that server (and signs in with
// CONSOLE_TOKEN), else over the mock server with ordinary and with hostile texts.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { mock, type Mock } from "../mock/server";
import { browser, clipped, DIST, faults, goTo, type Look, overflow, settled, tab } from "./kit";
import { routes } from "./routes";

const REAL = process.env["CONSOLE_URL"];
const TOKEN = process.env["CONSOLE_TOKEN"];
/** The short form looks at fewer combinations. */
const isShort = process.env["CONSOLE_SHORT"] !== undefined;

const WIDE: Look = { width: 1440, dark: false };
const NARROW: Look = { width: 390, dark: true };
const OTHERS: Look[] = [
  { width: 1440, dark: true },
  { width: 390, dark: false },
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

/** The faults of a walk. Each kind is told once, with the first page that has it. */
class Found {
  readonly kinds = new Map<string, { text: string; times: number }>();

  add(at: string, fault: string): void {
    const kind = fault.slice(0, 24);
    const known = this.kinds.get(kind);
    if (known) known.times += 1;
    else this.kinds.set(kind, { text: `${at}: ${fault}`, times: 1 });
  }

  list(): string[] {
    return [...this.kinds.values()].map(({ text, times }) =>
      times > 1 ? `${text} (on ${times} pages)` : text,
    );
  }
}

/** What is wrong with the page that is open. */
async function mistakes(page: Page, isHostile: boolean): Promise<string[]> {
  const found: string[] = [];
  const wide = await overflow(page);
  if (wide > 0) found.push(`too wide by ${wide} px`);
  if (await page.evaluate("window.owned !== undefined")) found.push("a script of the data ran");
  // A hostile word may be longer than its place.
  const cut = isHostile ? [] : await clipped(page);
  if (cut.length > 0) found.push(`badges are clipped: ${cut.join(", ")}`);
  const title = await page.title();
  if (!title.endsWith("Optimus")) found.push(`its title is ${title}`);
  const problem = page.locator(".banner.is-problem[role=alert]");
  if ((await problem.count()) > 0) found.push(await problem.first().innerText());
  const elements = isHostile ? await page.locator("main img, main script, main iframe").count() : 0;
  if (elements > 0) found.push("data became an element");
  return found;
}

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
  const found = new Found();
  for (const { name, href } of all) {
    await goTo(page, href);
    for (const fault of await mistakes(page, isHostile)) found.add(name, fault);
    // Offences are counted before axe runs, which adds its own elements.
    for (const offence of offences.splice(0)) found.add(name, offence);
    for (const fault of await faults(page)) found.add(name, fault);
    offences.length = 0;
  }
  await context.close();
  return found.list();
}

const words = (look: Look) => `${look.width} px, ${look.dark ? "dark" : "light"}`;

for (const look of isShort ? [WIDE] : [WIDE, NARROW, ...OTHERS]) {
  const name = words(look);
  test(`every page is whole at ${name}`, async () => {
    let url = REAL;
    if (url === undefined) {
      const fine = await mock({ dist: DIST, mount: "/a/b/c/" });
      mocks.push(fine);
      url = fine.url;
    }
    assert.deepEqual(await walk(url, look, false), []);
  });
}

for (const look of isShort ? [NARROW] : [WIDE, NARROW, ...OTHERS]) {
  const name = words(look);
  test(`hostile texts are shown as text at ${name}`, { skip: REAL !== undefined }, async () => {
    const hostile = await mock({ dist: DIST, mode: "hostile" });
    mocks.push(hostile);
    assert.deepEqual(await walk(hostile.url, look, true), []);
  });
}
