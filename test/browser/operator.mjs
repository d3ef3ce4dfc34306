// Drives the operator's console: a link that is good once, a leaked key that is
// found and revoked, an organization that is changed and suspended, a provider that
// fails, and an auditor who only looks. CONSOLE is JSON with the console's url, a
// link, an auditor's token, an organization's name and one of its keys, and how many
// calls of another organization have failed at which provider.
import { chromium } from "playwright-core";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import assert from "node:assert/strict";

const given = JSON.parse(process.env.CONSOLE);
const shots = new URL("screenshots/", import.meta.url).pathname;
mkdirSync(shots, { recursive: true });
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--headless", "--hide-scrollbars", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
const sent = [];
const wrong = [];

async function open(theme = "light", width = 1440) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: theme, reducedMotion: "reduce" });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  page.on("pageerror", (e) => wrong.push(e.message));
  page.on("console", (m) => {
    if (["error", "warning"].includes(m.type()) && !/40[13] \(/.test(m.text())) wrong.push(m.text());
  });
  page.on("request", (r) => sent.push(r.url() + " " + (r.postData() ?? "")));
  return page;
}

async function accessible(page, name) {
  await page.evaluate(axe + "; void 0");
  const found = await page.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"] }));
  assert.deepEqual(found.violations.filter((v) => ["serious", "critical"].includes(v.impact)).map((v) => `${name}: ${v.id} ${v.nodes[0].html}`), []);
}

const heading = (page, name) => page.getByRole("heading", { level: 1, name }).waitFor();

try {
  const page = await open();
  await page.goto(given.link);
  await heading(page, "Overview");
  assert.equal(new URL(page.url()).hash, "", "the token stays in the address");
  const again = await open();
  await again.goto(given.link);
  await again.getByText("this link was used or has expired").waitFor();
  await accessible(again, "sign-in");

  // A provider fails: it is said at once, and its calls are one click away.
  const { provider, failed, customer } = given;
  await page.getByText(`${provider} is down: ${failed} of ${failed} calls failed`).waitFor();
  await accessible(page, "overview");
  await page.getByRole("region", { name: "By organization" }).getByRole("link", { name: customer }).waitFor();
  await page.getByRole("region", { name: "By provider" }).getByRole("link", { name: String(failed) }).first().click();
  await heading(page, "Calls");
  await page.getByText(`${failed} calls`, { exact: true }).waitFor();
  const calls = page.getByRole("region", { name: "Calls" }).locator("tbody tr");
  assert.equal(await calls.count(), failed);
  assert.ok((await calls.allInnerTexts()).every((t) => t.includes(customer) && t.includes("500")));
  await page.getByLabel("Status").selectOption("ok");
  await page.getByText("No call matches").waitFor();
  await page.getByRole("button", { name: "Clear filters" }).click();
  await page.getByLabel("Group by").selectOption("organization");
  await page.getByLabel("Figure").selectOption("requests");
  await page.locator(".legend a", { hasText: customer }).click();
  await page.getByLabel("Organization").locator("option:checked", { hasText: customer }).waitFor({ state: "attached" });
  await calls.first().getByRole("button", { name: /^Details/ }).click();
  await page.getByRole("dialog", { name: "Call" }).getByText("500").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("link", { name: "Providers" }).click();
  await page.getByRole("button", { name: `Test ${provider}` }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Test", exact: true }).click();
  await page.getByRole("dialog").getByRole("status").getByText("yes").waitFor();
  await accessible(page, "test of a provider");
  await page.keyboard.press("Escape");
  await page.getByRole("cell", { name: "down" }).click();
  await page.getByRole("dialog", { name: `Failures of ${provider}` }).getByRole("cell", { name: "failed" }).first().waitFor();
  await page.keyboard.press("Escape");

  await page.getByRole("link", { name: "Health" }).click();
  await page.getByText("1 instance", { exact: true }).waitFor();
  await page.getByText(`provider ${provider} is down`).waitFor();
  await page.getByRole("link", { name: "Jobs" }).click();
  await page.getByText("No job is pending").waitFor();
  await page.getByRole("link", { name: "Billing events" }).click();
  await page.getByText("There was no billing event yet").waitFor();

  await page.getByRole("link", { name: "Keys" }).click();
  await page.getByLabel("Find a key", { exact: true }).fill(given.key);
  await page.getByRole("button", { name: "Find" }).click();
  await page.getByRole("button", { name: "Clear" }).waitFor();
  await page.getByRole("button", { name: /^Actions for key/ }).click();
  await page.getByRole("menuitem", { name: "Revoke…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
  await page.getByRole("cell", { name: "revoked" }).waitFor();
  assert.ok(!sent.some((s) => s.includes(given.key)), "the key was sent");

  await page.getByRole("link", { name: "Organizations" }).click();
  await page.getByRole("link", { name: given.name }).click();
  await heading(page, given.name);
  await page.getByRole("button", { name: "Add entry" }).click();
  await page.getByLabel("Amount").fill("25");
  await page.getByLabel("Note").fill("first payment");
  await page.getByRole("dialog").getByRole("button", { name: "Add" }).click();
  await page.getByRole("cell", { name: "first payment" }).waitFor();
  await page.getByRole("button", { name: "Edit…" }).click();
  await page.getByLabel("Open at a time").fill("7");
  await page.getByLabel("Keys at most").fill("12");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("0 of 12").waitFor();
  await page.getByRole("button", { name: "Edit…" }).click();
  assert.equal(await page.getByLabel("Open at a time").inputValue(), "7");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Set budget" }).click();
  await page.getByLabel("Limit", { exact: true }).fill("50");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("region", { name: "Budgets" }).getByText("the organization, month").waitFor();
  await page.getByRole("button", { name: "Suspend…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Suspend" }).click();
  await page.getByRole("button", { name: "Resume" }).waitFor();
  const place = new URL(page.url()).pathname;

  // An auditor sees the same, and no way to change it.
  for (const [theme, width] of [["light", 1440], ["dark", 1440], ["light", 390], ["dark", 390]]) {
    const auditor = await open(theme, width);
    await auditor.goto(given.url + place);
    await auditor.getByLabel("Operator token").fill(given.auditor);
    await auditor.getByRole("button", { name: "Sign in" }).click();
    await heading(auditor, given.name);
    for (const name of ["Suspend…", "Resume", "Edit…", "Add entry", "Set budget", "Create", /^Actions/, /^Test/]) assert.equal(await auditor.getByRole("button", { name }).count(), 0, `${name} is shown to an auditor`);
    const refused = await auditor.evaluate((path) => fetch("/operator/v1" + path, { method: "PATCH", body: '{"status":"active"}' }).then((r) => r.status), place.slice("/operator".length));
    assert.equal(refused, 403);
    for (const [path, title] of [[place, given.name], ["/operator", "Overview"], ["/operator/organizations", "Organizations"], ["/operator/calls", "Calls"], ["/operator/providers", "Providers"], ["/operator/jobs", "Jobs"], ["/operator/events", "Billing events"], ["/operator/health", "Health"], ["/operator/keys", "Keys"], ["/operator/audit", "Audit"], ["/operator/access", "Access"]]) {
      await auditor.goto(given.url + path);
      await heading(auditor, title);
      await auditor.waitForFunction(() => !document.querySelector("[aria-busy=true], .bones"));
      await auditor.screenshot({ path: `${shots}operator-${title.toLowerCase().replaceAll(" ", "-")}-${theme}-${width}.png`, fullPage: true });
      await accessible(auditor, title);
      const over = await auditor.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(over <= 0, `${title} at ${width} is ${over} px too wide`);
    }
    await auditor.getByRole("button", { name: "Sign out" }).click();
    await auditor.getByLabel("Operator token").waitFor();
  }
  await page.getByRole("link", { name: "Access", exact: true }).click();
  await heading(page, "Access");
  await page.getByText("this session").waitFor();
  await page.screenshot({ path: `${shots}operator-access-admin.png`, fullPage: true });
  await accessible(page, "access");
  assert.deepEqual(wrong, []);
} finally {
  await browser.close();
}
