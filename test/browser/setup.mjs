// What the browser tests share: a browser, people who sign in, and rules that
// every page keeps.
import { chromium } from "playwright-core";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename } from "node:path";
import assert from "node:assert/strict";

// Each file has a reseller of its own, so that files can run side by side.
const all = JSON.parse(process.env.SHOP);
const name = basename(process.argv[1], ".test.mjs");
const { resellers, ...everyones } = all;
export const shop = { ...everyones, ...(resellers[name] ?? Object.values(resellers)[0]) };
export const shots = process.env.SHOTS ?? new URL("screenshots/", import.meta.url).pathname;
mkdirSync(shots, { recursive: true });

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: [
    "--headless", "--hide-scrollbars", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", ...JSON.parse(process.env.BROWSER_ARGS ?? "[]"),
  ],
});

// open makes a page of a browser of its own, which notes whatever must not
// happen; check says so at the end. Fine are messages of the console that may
// come, also origins that may be asked.
export async function open({ theme = "light", width = 1280, height = 860, fine = [], also = [] } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, isMobile: width < 500, hasTouch: width < 500, colorScheme: theme, acceptDownloads: true, reducedMotion: "reduce" });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000); // busy machines are slow
  const wrong = [];
  const bodies = [];
  const allowed = [/401 \(Unauthorized\)/, ...fine];
  page.on("console", (m) => {
    if (["error", "warning"].includes(m.type()) && !allowed.some((p) => p.test(m.text()))) wrong.push(`console: ${m.text()} at ${m.location().url}`);
  });
  page.on("pageerror", (e) => wrong.push(`page error: ${e.message}`));
  page.on("dialog", (d) => {
    wrong.push(`dialog: ${d.message()}`);
    d.dismiss();
  });
  page.on("request", (r) => {
    const url = new URL(r.url());
    if (url.protocol.startsWith("http") && url.origin !== shop.url && !also.includes(url.origin)) wrong.push(`request to ${url.origin}`);
  });
  page.on("response", async (r) => {
    if (r.url().includes("/gw/") || r.url().endsWith("/session")) bodies.push({ url: r.url(), text: await r.text().catch(() => "") });
  });
  await page.addInitScript(() => {
    window.shifted = 0;
    new PerformanceObserver((list) => {
      for (const e of list.getEntries()) if (!e.hadRecentInput) window.shifted += e.value;
    }).observe({ type: "layout-shift", buffered: true });
  });
  return {
    page,
    context,
    bodies,
    wrong,
    check: async () => {
      assert.deepEqual(wrong, []);
      await context.close();
    },
  };
}

export async function signIn(page, root, key) {
  await page.goto(shop.url + root);
  await page.getByLabel("Key").fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { level: 1, name: /^(Overview|Models)$/ }).waitFor();
}

let waits = 0;

// settled waits until nothing is being read any more. What an event begins is
// shown as begun some frames later.
export async function settled(page) {
  await page.waitForFunction((wait) => {
    const quiet = document.querySelector("h1") && !document.querySelector(".bones") && !document.querySelector("[aria-busy=true]");
    if (window.settling?.wait !== wait) window.settling = { wait, frames: 0 };
    window.settling.frames = quiet ? window.settling.frames + 1 : 0;
    return window.settling.frames > 2;
  }, ++waits);
}

// delayed has the gateway's answers come late, each by as many milliseconds as
// the name in its path says. What it returns waits until all have come and are
// shown.
export async function delayed(page, delays) {
  const awaited = new Set();
  for (const end of ["requestfinished", "requestfailed"]) page.on(end, (r) => awaited.delete(r));
  await page.route("**/gw/**", async (route) => {
    awaited.add(route.request());
    const name = new URL(route.request().url()).pathname.split("/gw/")[1].split("/")[0];
    await new Promise((then) => setTimeout(then, delays[name] ?? 0));
    await route.continue().catch(() => {}); // the page has gone elsewhere
  });
  return async () => {
    await until("all answers come", () => awaited.size === 0);
    await page.evaluate(() => new Promise((then) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(then, 20)))));
  };
}

// show opens a path below the root and waits for its figures.
export async function show(page, path) {
  await page.goto(shop.url + path);
  await settled(page);
}

// accessible runs axe; nothing serious may be found.
export async function accessible(page, what) {
  await page.evaluate(axe + "; void 0");
  const found = await page.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"] }));
  const bad = found.violations.filter((v) => ["serious", "critical"].includes(v.impact));
  assert.deepEqual(bad.map((v) => `${what}: ${v.id}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160) + " " + (n.any[0]?.message ?? "")).join(" | ")}`), []);
}

// call asks the API itself, as key.
export async function call(key, target, body) {
  const [method, path] = target.split(" ");
  const response = await fetch(shop.url + path, { method, headers: { Authorization: "Bearer " + key, "Content-Type": "application/json" }, body: body && JSON.stringify(body) });
  const text = await response.text();
  const json = response.headers.get("Content-Type")?.startsWith("application/json") ? JSON.parse(text) : undefined;
  return { status: response.status, text, json };
}

// pasted makes the call that a page shows for a terminal, as key.
export async function pasted(text, key) {
  const [, url] = /^curl (\S+) /.exec(text);
  const body = / -d '(.*)'$/s.exec(text)[1];
  return fetch(url, { method: "POST", body, headers: { Authorization: "Bearer " + key, "Content-Type": "application/json" } });
}

// has says whether the gateway serves a path of the API.
export async function has(path) {
  return (await call(shop.manager, "GET " + path)).status !== 404;
}

// until asks again and again for what is not there yet.
export async function until(what, ask) {
  for (let tries = 0; tries < 600; tries++) {
    const found = await ask();
    if (found) return found;
    await new Promise((then) => setTimeout(then, 100));
  }
  assert.fail("never: " + what);
}

// lines are the cells of a CSV file, without the titles; none of ours has a
// line break in a cell.
export function lines(text) {
  return text.trim().split("\r\n").slice(1).map((l) => [...l.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map((m) => m[1]?.replaceAll('""', '"') ?? m[2]));
}

export async function downloaded(page, press) {
  const [file] = await Promise.all([page.waitForEvent("download"), press()]);
  return { name: file.suggestedFilename(), text: readFileSync(await file.path(), "utf8") };
}
