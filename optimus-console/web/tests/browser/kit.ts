// Opens pages in the system's Chromium and notes whatever must not happen.

import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";

const NAMES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

export const DIST = new URL("../../../dist/", import.meta.url).pathname;

/** Starts the browser: `CHROMIUM` if it is set, else the one of the system. */
export async function browser(): Promise<Browser> {
  const path = process.env["CHROMIUM"] ?? NAMES.find(existsSync);
  if (path === undefined) throw new Error("found no Chromium; install the package `chromium`");
  const args = ["--disable-gpu", "--disable-dev-shm-usage"];
  // Chromium has no sandbox for root.
  if (process.getuid?.() === 0) args.push("--no-sandbox");
  return chromium.launch({ executablePath: path, args });
}

export interface Look {
  width?: number;
  dark?: boolean;
}

export interface Opened {
  page: Page;
  context: BrowserContext;
  /** Violations of the policy, requests to other servers, errors and dialogs. */
  offences: string[];
}

const HEIGHTS: Record<number, number> = { 390: 844, 1440: 900 };

/** Opens a tab. Everything that happens in it is watched from the start. */
export async function tab(from: Browser, url: string, look: Look = {}): Promise<Opened> {
  const width = look.width ?? 1440;
  const context = await from.newContext({
    viewport: { width, height: HEIGHTS[width] ?? 900 },
    colorScheme: look.dark ? "dark" : "light",
    reducedMotion: "reduce",
    timezoneId: "UTC",
    locale: "en-GB",
  });
  const offences: string[] = [];
  const page = await context.newPage();
  const origin = new URL(url).origin;
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== origin) offences.push(`request to ${request.url()}`);
  });
  page.on("pageerror", (error) => offences.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => {
    offences.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("console", (message) => {
    const text = message.text();
    // A refused sign-in and a server that is away are logged by the browser itself.
    const isExpected = /Failed to load resource|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION/.test(text);
    if (message.type() === "error" && !isExpected) offences.push(`console: ${text}`);
  });
  await page.exposeFunction("__offence", (text: string) => offences.push(text));
  await page.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) => {
      const tell = (window as unknown as { __offence: (text: string) => void }).__offence;
      tell(`policy: ${event.effectiveDirective} ${event.blockedURI} ${event.sample}`);
    });
  });
  return { page, context, offences };
}

/** Waits until a page has its data and has drawn it. */
export async function settled(page: Page): Promise<void> {
  await page.waitForSelector("h1", { state: "attached" });
  await page.waitForFunction(() => document.querySelector(".waiting") === null);
  await page.evaluate(
    () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
  );
}

/** Opens a route of the console in a tab that has it open. */
export async function goTo(page: Page, href: string): Promise<void> {
  await page.evaluate((to) => {
    location.hash = to;
  }, href);
  await settled(page);
}

let axe: string | undefined;

/** Returns the faults of accessibility that axe finds. */
export async function faults(page: Page): Promise<string[]> {
  const require = createRequire(import.meta.url);
  axe ??= await readFile(require.resolve("axe-core/axe.min.js"), "utf8");
  await page.evaluate(axe);
  return page.evaluate(async () => {
    const tool = (
      window as unknown as {
        axe: { run: (what: Document, how: object) => Promise<{ violations: Fault[] }> };
      }
    ).axe;
    interface Fault {
      id: string;
      help: string;
      nodes: { html: string; failureSummary: string }[];
    }
    const { violations } = await tool.run(document, { resultTypes: ["violations"] });
    return violations.map((fault) => {
      const first = fault.nodes[0];
      const detail = `${first?.html.slice(0, 200)} ${first?.failureSummary.slice(0, 300)}`;
      return `${fault.id}: ${fault.help} (${fault.nodes.length} times) ${detail}`;
    });
  });
}

/** Returns by how many pixels a page is wider than its window. */
export function overflow(page: Page): Promise<number> {
  return page.evaluate(() => {
    const root = document.documentElement;
    return root.scrollWidth - root.clientWidth;
  });
}

/** Returns the texts of the badges that are not seen whole. */
export function clipped(page: Page): Promise<string[]> {
  return page
    .locator("main .tag, main .state")
    .evaluateAll((badges) =>
      badges
        .filter((badge) => badge.scrollWidth > badge.clientWidth)
        .map((badge) => badge.textContent ?? ""),
    );
}
