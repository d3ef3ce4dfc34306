// What people do in the dashboard, on the real gateway with a simulated
// provider behind it.
import { after, test } from "node:test";
import assert from "node:assert/strict";
import { accessible, browser, call, downloaded, has, open, settled, shop, shots, show, signIn } from "./setup.mjs";

after(() => browser.close());

const missing = [/404 \(Not Found\)/];

test("signing in and out, by keyboard alone", async () => {
  const { page, check } = await open();
  await page.goto(shop.url + "/dashboard/usage?since=24h");
  await page.getByLabel("Key").waitFor();
  await page.keyboard.type("gw_live_" + "0".repeat(48));
  await page.keyboard.press("Enter");
  await page.getByText("This key is not good here.").waitFor();
  assert.match(await page.locator("form").innerText(), /Request [0-9a-f-]{36}/);
  await page.getByLabel("Key").focus();
  await page.keyboard.press("Control+A");
  await page.keyboard.type(shop.manager);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "Usage" }).waitFor(); // where it was going
  const cookies = await page.context().cookies();
  assert.equal(cookies.length, 1);
  assert.ok(cookies[0].httpOnly && cookies[0].sameSite === "Strict" && !cookies[0].value.includes(shop.manager));
  assert.equal(await page.evaluate(() => document.cookie), "");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to content");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "content");
  await page.getByRole("button", { name: "Sign out" }).focus();
  await page.keyboard.press("Enter");
  await page.getByLabel("Key").waitFor();
  await page.reload();
  await page.getByLabel("Key").waitFor();
  await check();
});

test("a customer's key is sent to its portal, and nobody else's is let in there", async () => {
  const { page, check } = await open({ fine: [/403 \(Forbidden\)/] });
  await page.goto(shop.url + "/dashboard");
  await page.getByLabel("Key").fill(shop.customer);
  await page.keyboard.press("Enter");
  await page.getByText("its portal is where it signs in").waitFor();
  for (const key of [shop.manager, shop.neighbor]) {
    await page.goto(shop.url + "/p/" + shop.portal);
    await page.getByLabel("Key").fill(key);
    await page.keyboard.press("Enter");
    await page.getByText("This key is not good here.").waitFor();
  }
  const none = await page.goto(shop.url + "/p/none-of-this-name").catch(() => undefined);
  assert.equal(none?.status(), 404);
  await page.context().close();
  void check;
});

test("overview: periods, figures as table and CSV, groups", async () => {
  const { page, check } = await open();
  await signIn(page, "/dashboard", shop.manager);
  await settled(page);
  for (const period of ["24 h", "30 days", "90 days", "7 days"]) {
    await page.getByText(period, { exact: true }).first().click();
    await settled(page);
  }
  await page.getByRole("button", { name: /^Requests/ }).click();
  const chart = page.getByRole("img", { name: /Requests over the last 7 days/ });
  await chart.focus();
  await page.keyboard.press("End");
  assert.match(await page.locator(".tip").innerText(), /Succeeded[\s\S]*Failed[\s\S]*Total/);
  await page.locator("fieldset", { hasText: "Chart" }).getByText("Table").click();
  const rows = await page.getByRole("region", { name: "Requests" }).locator("tbody tr").count();
  assert.equal(rows, 7);
  const file = await downloaded(page, () => page.locator("section", { hasText: "Chart" }).getByRole("button", { name: "CSV" }).click());
  assert.equal(file.text.trim().split("\r\n").length, 8);
  assert.match(file.text, /^Day,Succeeded,Failed\r\n/);
  const series = (await call(shop.manager, "GET /gw/series?since=7d&interval=day")).json;
  const last = file.text.trim().split("\r\n").at(-1).split(",").at(-2);
  assert.equal(Number(last), series.at(-1).requests - series.at(-1).errors);
  for (const [group, text] of [["author", "anthropic"], ["sub_account_id", "Globex"], ["provider", "gemini"]]) {
    await page.getByLabel("By", { exact: true }).selectOption(group);
    await page.locator("table").last().getByText(text, { exact: true }).waitFor();
  }
  await page.getByLabel("By", { exact: true }).selectOption("*");
  await page.locator("table").last().getByText("support", { exact: true }).waitFor();
  await check();
});

test("usage: filters, paging, a row's detail, CSV of what is shown", async () => {
  const { page, check } = await open();
  await signIn(page, "/dashboard", shop.manager);
  await show(page, "/dashboard/usage?since=90d");
  const table = page.getByRole("region", { name: "Calls" }).locator("tbody tr");
  assert.equal(await table.count(), 100);
  await page.getByRole("button", { name: "Load more" }).click();
  await page.getByText("300 calls").waitFor();
  const file = await downloaded(page, () => page.getByRole("button", { name: "CSV" }).click());
  assert.equal(file.text.trim().split("\r\n").length, 301);
  await page.getByLabel("Provider").fill("gemini");
  await page.getByRole("button", { name: "Filter" }).click();
  await settled(page);
  assert.ok((await table.allInnerTexts()).every((t) => t.includes("gemini")));
  await page.getByLabel("State of the books").selectOption("partial");
  await settled(page);
  assert.ok((await table.allInnerTexts()).every((t) => t.includes("gemini") && t.includes("partial")));
  await page.getByRole("button", { name: "Clear" }).click();
  await settled(page);
  await table.nth(2).click();
  const detail = page.getByRole("dialog", { name: "Call" });
  const id = (await detail.locator("dd code").first().innerText()).trim();
  const row = (await call(shop.manager, "GET /gw/usage?id=" + id)).json[0];
  const text = await detail.innerText();
  for (const part of [row.model_slug, row.model, String(row.status_code), row.attribution.team]) assert.ok(text.includes(part), part);
  await page.screenshot({ path: `${shots}/flow-usage-detail.png` });
  await accessible(page, "usage detail");
  await page.keyboard.press("Escape");
  await detail.waitFor({ state: "detached" });
  await page.getByLabel("Request id").fill(id);
  await page.keyboard.press("Enter");
  await settled(page);
  assert.equal(await table.count(), 1);
  await page.getByLabel("Request id").fill("nonsense");
  await page.keyboard.press("Enter");
  await page.getByText("id must be a UUID").waitFor();
  assert.match(await page.getByRole("alert").innerText(), /Request [0-9a-f-]{36}/);
  await page.context().close();
  void check;
});

test("keys: issue under the ceiling, shown once, call with it, revoke", async () => {
  const { page, context, check } = await open();
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await signIn(page, "/dashboard", shop.manager);
  await show(page, "/dashboard/keys");
  await page.getByRole("button", { name: "Issue key" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Expires").selectOption("604800");
  await dialog.getByText("Only some").click();
  await dialog.getByLabel("Find a model").fill("gpt-5-mini");
  await dialog.getByLabel("openai/gpt-5-mini").check();
  await accessible(page, "issue key");
  await page.screenshot({ path: `${shots}/flow-key-issue.png` });
  await dialog.getByRole("button", { name: "Issue key" }).click();
  const secret = await page.getByTestId("secret").innerText();
  assert.match(secret, /^gw_live_[0-9a-f]{48}$/);
  await page.getByRole("button", { name: "Copy", exact: true }).first().click();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), secret);
  await page.screenshot({ path: `${shots}/flow-key-issued.png` });
  await page.keyboard.press("Escape"); // not by accident
  assert.ok(await page.getByTestId("secret").isVisible());
  await page.getByRole("button", { name: "I have stored it" }).click();
  assert.ok(!(await page.content()).includes(secret));
  const chat = (model) => call(secret, "POST /v1/chat/completions", { model, messages: [{ role: "user", content: "hello" }] });
  assert.equal((await chat("openai/gpt-5-mini")).status, 200);
  assert.equal((await chat("openai/gpt-5")).status, 403);
  assert.equal((await call(secret, "GET /gw/keys")).status, 403);
  await page.getByLabel("Find a key").fill(secret.slice(0, 16));
  await page.getByRole("button", { name: `Actions for key ${secret.slice(0, 16)}` }).click();
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Revoke key" }).click();
  await page.getByText("No key matches").waitFor();
  assert.equal((await chat("openai/gpt-5-mini")).status, 401);
  await page.getByText("Revoked", { exact: true }).click();
  await page.getByText(secret.slice(0, 16)).waitFor();
  await check();
});

test("customers: add, price, issue, suspend, resume", async () => {
  const { page, check } = await open();
  await signIn(page, "/dashboard", shop.manager);
  await show(page, "/dashboard/customers");
  const globex = await page.locator("tr", { hasText: "Globex" }).innerText();
  assert.match(globex, /15%[\s\S]*\$\d/);
  await page.getByRole("button", { name: "Add customer" }).click();
  await page.getByLabel("Name").fill("Cyberdyne & Söhne");
  assert.equal(await page.getByLabel("Slug").inputValue(), "cyberdyne-sohne");
  await page.getByLabel("Markup, %").fill("25");
  await page.screenshot({ path: `${shots}/flow-customer-add.png` });
  await page.getByRole("dialog").getByRole("button", { name: "Add customer" }).click();
  await page.getByRole("heading", { level: 1, name: /Cyberdyne/ }).waitFor();
  await settled(page);
  assert.match(await page.locator("main").innerText(), /25%/);
  await page.getByRole("button", { name: "Issue key" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Issue key" }).click();
  const secret = await page.getByTestId("secret").innerText();
  await page.getByRole("button", { name: "I have stored it" }).click();
  assert.equal((await call(secret, "GET /gw/me")).status, 200);
  await page.getByRole("button", { name: "Suspend" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Suspend" }).click();
  await page.getByRole("button", { name: "Resume" }).waitFor();
  assert.equal((await call(secret, "GET /gw/me")).status, 401);
  await page.getByRole("button", { name: "Resume" }).click();
  await page.getByRole("button", { name: "Suspend" }).waitFor();
  await page.getByRole("button", { name: "Edit" }).click();
  await page.getByLabel("Markup, %").fill("99999");
  await page.getByText("From 0 to 10,000.").waitFor();
  await page.getByLabel("Markup, %").fill("12.5");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("12.5%").waitFor();
  // A slug that is taken: what the gateway says, and the request.
  await show(page, "/dashboard/customers");
  await page.getByRole("button", { name: "Add customer" }).click();
  await page.getByLabel("Name").fill("Again");
  await page.getByLabel("Slug").fill("cyberdyne-sohne");
  await page.getByRole("dialog").getByRole("button", { name: "Add customer" }).click();
  assert.match(await page.getByRole("alert").innerText(), /exists already[\s\S]*Request [0-9a-f-]{36}/);
  await page.context().close();
  void check;
});

test("budgets: set, change, fill, remove", async () => {
  const { page, check } = await open();
  await signIn(page, "/dashboard", shop.manager);
  await show(page, "/dashboard/budgets");
  await page.getByRole("button", { name: "Set budget" }).click();
  await page.getByLabel("For", { exact: true }).selectOption("sub_account");
  await page.getByLabel("Customer", { exact: true }).selectOption({ label: "Initech" });
  await page.getByLabel("Each", { exact: true }).selectOption("day");
  await page.getByLabel("Limit").fill("0.000001");
  await page.screenshot({ path: `${shots}/flow-budget-set.png` });
  await page.getByRole("button", { name: "Save" }).click();
  const meter = page.getByRole("meter", { name: "Budget of Initech by the day" });
  await meter.waitFor();
  const found = (await call(shop.manager, "GET /gw/budgets")).json.find((b) => b.id === shop.second && b.period === "day");
  assert.equal(found.limit_usd, 0.000001);
  assert.equal(Number(await meter.getAttribute("aria-valuenow")), Math.min(100, Math.round((found.spend_usd / found.limit_usd) * 100)));
  await page.getByRole("button", { name: "Actions for the budget of Initech by the day" }).click();
  await page.getByRole("menuitem", { name: "Change limit…" }).click();
  await page.getByLabel("Limit").fill("500");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("of $500.00").waitFor();
  await page.getByRole("button", { name: "Actions for the budget of Initech by the day" }).click();
  await page.getByRole("menuitem", { name: "Remove…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
  await meter.waitFor({ state: "detached" });
  await check();
});

test("models: find one, see its prices, try it while it streams", async () => {
  const { page, check } = await open({ fine: [/400 \(Bad Request\)/] });
  await signIn(page, "/dashboard", shop.manager);
  await show(page, "/dashboard/models");
  await page.getByLabel("Find a model").fill("gpt-5-mini");
  await page.getByRole("button", { name: "Details of openai/gpt-5-mini" }).click();
  const dialog = page.getByRole("dialog");
  assert.match(await dialog.innerText(), /\$0\.25 \/ 1M tokens/);
  await dialog.getByLabel("Prompt").fill("hello there [[words=30]] [[gap=20ms]]");
  await dialog.getByRole("button", { name: "Run" }).click();
  await dialog.getByText(/First words after/).waitFor();
  await dialog.getByText(/\d+ tokens · \$/).waitFor();
  const id = await dialog.locator(".talk > .note code").innerText();
  assert.match(await dialog.getByRole("region", { name: "Answer" }).innerText(), /simulated answer/);
  const row = (await call(shop.manager, "GET /gw/usage?id=" + id)).json[0];
  assert.equal(row.attribution.source, "dashboard");
  await page.screenshot({ path: `${shots}/flow-model-try.png` });
  await accessible(page, "model detail");
  await page.keyboard.press("Escape");
  for (const [slug, want] of [["anthropic/claude-haiku-4.5", /simulated answer/], ["openai/text-embedding-3-small", /dimensions/]]) {
    await show(page, "/dashboard/models?model=" + encodeURIComponent(slug));
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByText(/\d+ tokens · \$/).waitFor();
    assert.match(await page.getByRole("region", { name: "Answer" }).innerText(), want);
  }
  await show(page, "/dashboard/models?model=" + encodeURIComponent("openai/gpt-image-1"));
  await page.getByRole("button", { name: "Run" }).click();
  await page.waitForFunction(() => document.querySelector(".said img")?.naturalWidth > 0);
  // What a provider refuses is shown as it says it.
  await show(page, "/dashboard/models?model=" + encodeURIComponent("openai/gpt-5-mini"));
  await page.getByLabel("Prompt").fill("hi [[status=400]]");
  await page.getByRole("button", { name: "Run" }).click();
  assert.match(await page.getByRole("alert").innerText(), /Request [0-9a-f-]{36}/);
  await check();
});

test("branding: live preview, saved, seen in the portal", async () => {
  const { page, check } = await open();
  await signIn(page, "/dashboard", shop.manager);
  await show(page, "/dashboard/branding");
  await page.getByLabel("Product name").fill("Acme & Daughters");
  await page.getByLabel("Accent", { exact: true }).fill("#ffd400");
  const button = page.locator(".preview .button");
  assert.equal(await button.evaluate((e) => getComputedStyle(e).backgroundColor), "rgb(255, 212, 0)");
  assert.equal(await button.evaluate((e) => getComputedStyle(e).color), "rgb(11, 13, 18)");
  assert.match(await page.locator(".preview").innerText(), /Acme & Daughters/);
  await accessible(page, "preview, yellow on white");
  await page.locator("fieldset", { hasText: "Light" }).getByText("Dark").click();
  await accessible(page, "preview, yellow on black");
  await page.screenshot({ path: `${shots}/flow-branding.png` });
  await page.getByLabel("Address").fill("Not A Slug");
  await page.getByText("Only a–z, 0–9 and hyphens").waitFor();
  await page.getByLabel("Address").fill(shop.portal);
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Saved").waitFor();
  await page.waitForTimeout(2100); // how long a portal's brand is kept
  await page.goto(shop.url + "/p/" + shop.portal);
  await page.getByRole("heading", { name: "Acme & Daughters" }).waitFor();
  assert.equal(await page.title(), "Acme & Daughters");
  await accessible(page, "a yellow portal");
  await page.screenshot({ path: `${shots}/portal-yellow.png` });
  await call(shop.manager, "PUT /gw/branding", { portal_slug: shop.portal, product_name: "Acme Intelligence", accent_color: "#0f766e", allow_self_issue: true });
  await check();
});

test("evidence: download it and copy the command that verifies it", async (t) => {
  if (!(await has("/gw/evidence"))) return t.skip("this gateway has no evidence");
  const { page, check } = await open();
  await signIn(page, "/dashboard", shop.manager);
  await show(page, "/dashboard/evidence");
  const file = await downloaded(page, () => page.getByRole("button", { name: "Download evidence" }).click());
  assert.ok(file.text.split("\n").slice(0, -1).every((line) => line.startsWith("{")));
  assert.match(await page.getByLabel("Command that verifies the file").innerText(), new RegExp("modelgate evidence verify .*" + file.name.replaceAll(".", "\\.")));
  await check();
});

test("billing: store a key, map a customer, see events", async (t) => {
  if (!(await has("/gw/processor/config"))) return t.skip("this gateway has no billing export");
  const { page } = await open();
  await signIn(page, "/dashboard", shop.manager);
  await show(page, "/dashboard/billing");
  await page.getByRole("button", { name: "Actions for Globex" }).click();
  await page.getByRole("menuitem", { name: "Map to a customer…" }).click();
  await page.getByLabel("Customer id at the processor").fill("cus_globex");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("cus_globex").waitFor();
  await page.getByRole("button", { name: "Actions for Globex" }).click();
  await page.getByRole("menuitem", { name: "Unmap" }).click();
  await page.getByText("cus_globex").first().waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Store API key" }).click();
  await page.getByRole("textbox", { name: "API key" }).fill("sk_test_x");
  await page.getByRole("button", { name: "Store", exact: true }).click();
  // This gateway has no master key to seal it under, and says so.
  assert.match(await page.getByRole("alert").innerText(), /master key[\s\S]*Request [0-9a-f-]{36}/);
  await page.screenshot({ path: `${shots}/flow-billing.png` });
  await page.context().close();
});

test("a key with one scope sees what that scope shows", async () => {
  const { page, check } = await open({ fine: missing });
  await signIn(page, "/dashboard", shop.reader);
  for (const path of ["/keys", "/customers", "/budgets", "/branding"]) {
    await show(page, "/dashboard" + path);
    await page.getByText("It lacks the scope keys:manage").waitFor();
  }
  await show(page, "/dashboard/usage");
  assert.ok((await page.locator("tbody tr").count()) > 10);
  await check();
});

test("a session ends with its key", async () => {
  const { page, check } = await open();
  const issued = (await call(shop.manager, "POST /gw/keys", { scopes: ["stats:read"] })).json;
  await signIn(page, "/dashboard", issued.key);
  await call(shop.manager, "DELETE /gw/keys/" + issued.api_key_id);
  await page.getByRole("link", { name: "Usage" }).click();
  await page.getByText("The session has ended").waitFor();
  await check();
});

test("a small screen: the menu opens, is used, and closes", async () => {
  const { page, check } = await open({ width: 360, height: 740 });
  await signIn(page, "/dashboard", shop.manager);
  assert.ok(!(await page.getByRole("link", { name: "Keys", exact: true }).isVisible()));
  await page.getByRole("button", { name: "Menu" }).click();
  await page.screenshot({ path: `${shots}/flow-menu-360.png` });
  await page.getByRole("link", { name: "Keys", exact: true }).click();
  await page.getByRole("heading", { level: 1, name: "Keys" }).waitFor();
  await page.getByRole("link", { name: "Keys", exact: true }).waitFor({ state: "hidden" });
  await check();
});

test("the first page is small", async () => {
  const { page, context } = await open();
  const client = await context.newCDPSession(page);
  await client.send("Network.enable");
  let bytes = 0;
  client.on("Network.loadingFinished", (e) => (bytes += e.encodedDataLength));
  await signIn(page, "/dashboard", shop.manager);
  await settled(page);
  assert.ok(bytes > 50_000 && bytes < 200_000, `${bytes} bytes`);
  console.log(`first page with its figures: ${Math.round(bytes / 1024)} KiB`);
  await context.close();
});
