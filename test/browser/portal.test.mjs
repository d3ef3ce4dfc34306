// What a customer sees, and what it must not.
import { after, test } from "node:test";
import assert from "node:assert/strict";
import { accessible, browser, call, open, pasted, settled, shop, shots, show, signIn, until } from "./setup.mjs";

after(() => browser.close());

const root = "/p/" + shop.portal;

test("a customer sees its own calls, as billed, and no cost, route or neighbour", async () => {
  const { page, bodies, check } = await open();
  await signIn(page, root, shop.customer);
  for (const path of ["", "?group=author&period=30d", "?group=key_id&metric=requests", "?group=region", "?group=provider", "?group=model", "?group=sub_account_id", "/usage?since=90d", "/keys?show=all", "/budgets", "/models", "/jobs", "/start"]) await show(page, root + path);
  const own = (await call(shop.customer, "GET /gw/usage?limit=1000&since=30d")).json;
  const costs = new Map((await call(shop.manager, "GET /gw/usage?limit=1000&since=30d")).json.map((r) => [r.id, r.cost_usd]));
  const markup = (await call(shop.manager, "GET /gw/subaccounts")).json.find((s) => s.id === shop.first).markup_pct;
  let compared = 0;
  for (const row of own) {
    if (!costs.has(row.id) || row.cost_usd === 0) continue;
    compared++;
    assert.ok(Math.abs(row.cost_usd - costs.get(row.id) * (1 + markup / 100)) < 2e-9, `${row.id}: ${row.cost_usd} of ${costs.get(row.id)}`);
  }
  assert.ok(compared > 3);
  const sibling = (await call(shop.sibling, "GET /gw/keys")).json.map((k) => k.id);
  const secrets = [shop.second, ...sibling, "native-", "markup", "Initech", "Northwind", '"us"'];
  for (const { url, text } of bodies) {
    for (const secret of secrets) assert.ok(!text.includes(secret), `${url} holds ${secret}`);
    for (const row of own.slice(0, 50)) {
      const cost = costs.get(row.id);
      if (cost > 0) assert.ok(!text.includes(`"cost_usd":${cost},`), `${url} holds a cost`);
    }
  }
  assert.ok(bodies.length > 15);
  await check();
});

test("a customer issues keys on the portal's terms, and revokes them", async () => {
  const { page, check } = await open({ fine: [/403 \(Forbidden\)/, /409 \(Conflict\)/] });
  await signIn(page, root, shop.customer);
  await show(page, root + "/keys");
  await page.getByRole("button", { name: "Issue key" }).first().click();
  const lives = await page.getByLabel("Expires").locator("option").allInnerTexts();
  assert.deepEqual(lives, ["In 1 day", "In 7 days", "In 30 days", "In 90 days"]);
  await page.screenshot({ path: `${shots}/flow-portal-issue.png` });
  await page.getByRole("dialog").getByRole("button", { name: "Issue key" }).click();
  const refused = page.getByRole("alert");
  const secret = page.getByTestId("secret");
  await refused.or(secret).first().waitFor();
  if (await refused.isVisible()) {
    // The shop gave this customer as many keys as a portal allows.
    assert.match(await refused.innerText(), /active key limit reached[\s\S]*Request/i);
    await page.getByRole("button", { name: "Cancel" }).click();
    const mine = (await call(shop.customer, "GET /gw/keys")).json.filter((k) => k.status === "active" && k.scopes.length === 1);
    for (const k of mine.slice(0, 3)) await call(shop.manager, "DELETE /gw/keys/" + k.id);
    await page.getByRole("button", { name: "Issue key" }).first().click();
    await page.getByRole("dialog").getByRole("button", { name: "Issue key" }).click();
  }
  const key = await secret.innerText();
  const me = (await call(key, "GET /gw/me")).json;
  assert.deepEqual(me.scopes, ["inference:use"]);
  await page.getByRole("button", { name: "I have stored it" }).click();
  await settled(page);
  await page.getByRole("button", { name: `Actions for key ${key.slice(0, 16)}` }).click();
  await page.getByRole("menuitem", { name: "Revoke…" }).click();
  await page.getByRole("button", { name: "Revoke key" }).click();
  await page.getByRole("region", { name: "Keys" }).getByText(key.slice(0, 16)).waitFor({ state: "detached" });
  assert.equal((await call(key, "GET /gw/me")).status, 401);
  await check();
});

test("where customers issue no keys, the portal says who does", async () => {
  const brand = { portal_slug: shop.portal, product_name: "Acme Intelligence", accent_color: "#0f766e" };
  await call(shop.manager, "PUT /gw/branding", { ...brand, allow_self_issue: false });
  const { page, check } = await open({ fine: [/403 \(Forbidden\)/] });
  await page.waitForTimeout(2100); // how long a portal's brand is kept
  await signIn(page, root, shop.customer);
  await show(page, root + "/keys");
  await page.getByText("Acme Intelligence issues and revokes keys for you.").waitFor();
  assert.equal(await page.getByRole("button", { name: "Issue key" }).count(), 0);
  const answer = await page.evaluate(async (url) => (await fetch(url, { method: "POST", headers: { "Content-Type": "application/json" }, body: '{"scopes":["inference:use"],"expires_in_seconds":60}' })).status, root + "/gw/keys");
  assert.equal(answer, 403);
  await call(shop.manager, "PUT /gw/branding", { ...brand, allow_self_issue: true });
  await check();
});

test("who reads statistics sees keys and budgets, and no button that changes them", async () => {
  const issue = async (scopes) => (await call(shop.manager, "POST /gw/keys", { scopes, sub_account_id: shop.first })).json;
  const reader = await issue(["stats:read"]);
  const brand = { portal_slug: shop.portal, product_name: "Acme Intelligence", accent_color: "#0f766e" };
  await call(shop.manager, "PUT /gw/branding", { ...brand, allow_self_issue: false });
  await new Promise((then) => setTimeout(then, 2100)); // how long a portal's brand is kept
  const { page, check } = await open();
  await signIn(page, root, reader.key);
  await show(page, root + "/keys");
  await page.getByRole("region", { name: "Keys" }).getByText(reader.key.slice(0, 16)).waitFor();
  assert.equal(await page.getByRole("button", { name: "Issue key" }).count(), 0);
  assert.equal(await page.getByRole("button", { name: /^Actions for key/ }).count(), 0);
  await show(page, root + "/budgets");
  await page.getByRole("heading", { level: 1, name: "Budgets" }).waitFor();
  assert.equal(await page.getByText("does not show").count(), 0);
  assert.equal(await page.getByRole("button", { name: "Set budget" }).count(), 0);
  assert.equal(await page.getByRole("button", { name: /^Actions for the budget/ }).count(), 0);
  await call(shop.manager, "DELETE /gw/keys/" + reader.api_key_id);
  await call(shop.manager, "PUT /gw/branding", { ...brand, allow_self_issue: true });
  await check();
});

test("a key that only calls issues keys in the portal, and revokes those alone", async () => {
  // The shop gave this customer as many keys as a portal allows.
  const many = (await call(shop.customer, "GET /gw/keys")).json.filter((k) => k.status === "active" && k.scopes.length === 1);
  for (const k of many.slice(0, 4)) await call(shop.manager, "DELETE /gw/keys/" + k.id);
  const caller = (await call(shop.manager, "POST /gw/keys", { scopes: ["inference:use"], sub_account_id: shop.first, expires_in_seconds: 864000 })).json;
  await new Promise((then) => setTimeout(then, 2100)); // how long a portal's brand is kept
  const { page, check } = await open();
  await signIn(page, root, caller.key);
  await show(page, root + "/keys");
  const list = page.getByRole("region", { name: "Keys" });
  assert.equal(await list.getByText(caller.key.slice(0, 16)).count(), 0); // the reseller's
  await page.getByRole("button", { name: "Issue key" }).first().click();
  const lives = await page.getByLabel("Expires").locator("option").allInnerTexts();
  assert.deepEqual(lives, ["In 1 day", "In 7 days", "With the key of this session"]);
  await page.getByRole("dialog").getByRole("button", { name: "Issue key" }).click();
  const key = await page.getByTestId("secret").innerText();
  assert.deepEqual((await call(key, "GET /gw/me")).json.scopes, ["inference:use"]);
  await page.getByRole("button", { name: "I have stored it" }).click();
  await settled(page);
  await page.getByRole("button", { name: `Actions for key ${key.slice(0, 16)}` }).click();
  await page.getByRole("menuitem", { name: "Revoke…" }).click();
  await page.getByRole("button", { name: "Revoke key" }).click();
  await list.getByText(key.slice(0, 16)).waitFor({ state: "detached" });
  assert.equal((await call(key, "GET /gw/me")).status, 401);
  await show(page, root + "/budgets");
  await page.getByText("This key does not show budgets").waitFor();
  await call(shop.manager, "DELETE /gw/keys/" + caller.api_key_id);
  await check();
});

test("signing out while the database is away says that the session is not ended", async () => {
  const { page, check } = await open({ fine: [/503 \(Service Unavailable\)/] });
  await signIn(page, root, shop.customer);
  await settled(page);
  const error = { type: "unavailable", message: "this browser is signed out, but the database does not answer" };
  await page.route("**/session", (route) => (route.request().method() === "DELETE" ? route.fulfill({ status: 503, contentType: "application/json", body: JSON.stringify({ error }) }) : route.continue()));
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByText("this browser is signed out").waitFor();
  await page.getByRole("button", { name: "Sign in" }).waitFor();
  await check();
});

test("the quick start has the reseller's address", async () => {
  const { page, check } = await open();
  await signIn(page, root, shop.customer);
  await show(page, root + "/start");
  const text = await page.locator("main").innerText();
  assert.ok(text.includes(shop.url + "/v1"));
  assert.equal((await pasted(await page.getByLabel("A first call").innerText(), shop.customer)).status, 200);
  for (const client of ["Python", "Node.js", "curl"]) {
    await page.getByText(client, { exact: true }).click();
    assert.ok((await page.getByLabel("A first call").innerText()).includes(shop.url + "/v1"));
  }
  await accessible(page, "quick start");
  await check();
});

test("a customer pays in through the portal, calls, and sees what is left", async () => {
  const began = performance.now();
  const fine = [/404 \(Not Found\)/, /402 \(Payment Required\)/];
  const customer = (await call(shop.fresh, "GET /gw/me")).json.sub_account.id;
  const buyer = await open({ fine, also: [shop.processor], width: 390 });
  await signIn(buyer.page, root, shop.fresh);
  assert.equal(await buyer.page.getByRole("link", { name: "Balance" }).count(), 0);
  await show(buyer.page, root + "/wallet");
  await buyer.page.getByText("There is no prepaid balance").waitFor();
  await accessible(buyer.page, "no wallet");

  const seller = await open({ fine });
  await signIn(seller.page, "/dashboard", shop.manager);
  await show(seller.page, "/dashboard/billing");
  await seller.page.getByRole("button", { name: "Store secret" }).click();
  await seller.page.getByLabel("Secret", { exact: true }).fill(shop.deliveries);
  await seller.page.getByRole("button", { name: "Store", exact: true }).click();
  await seller.page.getByRole("button", { name: "Replace secret" }).waitFor();
  await show(seller.page, "/dashboard/customers/" + customer);
  await seller.page.getByRole("button", { name: "Set up" }).click();
  await seller.page.getByLabel("The customer may pay in").check();
  await seller.page.getByLabel("Alert below").fill("-1");
  await seller.page.getByText("From 0 to 1,000,000.").waitFor();
  await seller.page.getByLabel("Alert below").fill("2");
  await accessible(seller.page, "settings of a wallet");
  await seller.page.screenshot({ path: `${shots}/flow-wallet-settings.png` });
  await seller.page.getByRole("button", { name: "Save" }).click();
  await seller.page.getByRole("button", { name: "Add entry" }).waitFor();
  await seller.page.getByText("Nothing yet").waitFor();

  const chat = () => call(shop.fresh, "POST /v1/chat/completions", { model: "openai/gpt-5", messages: [{ role: "user", content: "[[words=400]]" }] });
  const { page } = buyer;
  let paid;
  await page.route(shop.processor + "/**", (route) => {
    paid = route.request().url();
    return route.fulfill({ contentType: "text/html", body: "<title>Pay</title>" });
  });
  await show(page, root);
  await page.getByRole("link", { name: "Balance" }).click();
  await settled(page);
  for (const bad of ["4.99", "501", "7.001", "x"]) {
    await page.getByLabel("Add money").fill(bad);
    await page.getByText("From $5.00 to $500.00, in whole cents.").waitFor();
    assert.ok(await page.getByRole("button", { name: "Go to payment" }).isDisabled());
  }
  await page.getByLabel("Add money").fill("25");
  await accessible(page, "a wallet that is empty");
  await page.screenshot({ path: `${shots}/flow-wallet-empty.png` });
  await page.getByRole("button", { name: "Go to payment" }).click();
  await page.waitForURL(shop.processor + "/**");
  await show(page, root + "/wallet?payment=left");
  await page.getByText("Nothing was charged.").waitFor();
  const hook = (await call(shop.manager, "GET /gw/processor/webhook")).json.url;
  const bank = await fetch(`${shop.bank}/?session=${paid.split("/").at(-1)}&hook=${encodeURIComponent(new URL(hook).pathname.replace(/^/, shop.url))}`, { method: "POST" });
  assert.equal(bank.status, 204);
  const back = new URL(bank.headers.get("X-Return-To"));
  await show(page, back.pathname + back.search);
  await page.getByText("Thank you.").waitFor();
  const balance = page.locator("dl.facts dd").first();
  assert.equal(await balance.innerText(), "$25.00");
  assert.equal((await chat()).status, 200);
  const left = await until("the call is taken off", async () => {
    const w = (await call(shop.fresh, "GET /gw/wallet")).json;
    return w.balance_usd < 25 && w.balance_usd;
  });
  await show(page, root + "/wallet");
  assert.equal(await balance.getAttribute("title"), "$" + left.toFixed(9).replace(/0{1,7}$/, ""));
  const movements = page.getByRole("region", { name: "Movements of the balance" });
  assert.match(await movements.innerText(), /Usage[\s\S]*-\$0\.00[\s\S]*Payment[\s\S]*\+\$25\.00/);
  const [width, wide] = await page.evaluate(() => [innerWidth, document.documentElement.scrollWidth]);
  assert.ok(wide <= width, `${wide} px of ${width}`);
  await accessible(page, "a wallet");
  await page.screenshot({ path: `${shots}/flow-wallet.png` });
  console.log(`first paid call through the portal after ${Math.round(performance.now() - began)} ms`);

  await show(seller.page, "/dashboard/customers/" + customer);
  await seller.page.getByRole("button", { name: "Add entry" }).click();
  await seller.page.getByLabel("What").selectOption("grant");
  await seller.page.getByLabel("Amount").fill("-5");
  await seller.page.getByText("More than 0 and at most 1,000,000.").waitFor();
  await seller.page.getByLabel("Amount").fill("5");
  await seller.page.getByLabel("Expires on (UTC)").fill(`${new Date().getUTCFullYear() + 1}-01-15`);
  await seller.page.getByLabel("Note").fill("Welcome");
  await accessible(seller.page, "an entry");
  await seller.page.getByRole("button", { name: "Add", exact: true }).click();
  await seller.page.getByRole("region", { name: "Movements of the balance" }).getByText("Welcome").waitFor();
  await accessible(seller.page, "a customer's wallet");
  await seller.page.screenshot({ path: `${shots}/flow-customer-wallet.png`, fullPage: true });
  await show(page, root + "/wallet");
  await page.getByText(/^Expires Jan 15, /).first().waitFor();
  const w = (await call(shop.fresh, "GET /gw/wallet")).json;
  assert.equal(Math.round((w.balance_usd - left) * 1e9), 5e9);

  await seller.page.getByRole("button", { name: "Settings" }).click();
  await seller.page.getByLabel("Blocked").check();
  await seller.page.getByRole("button", { name: "Save" }).click();
  await seller.page.getByText("All calls are refused. A chargeback or you did this").waitFor();
  assert.equal((await chat()).status, 402);
  await show(page, root + "/wallet");
  await page.getByText("Calls are refused until the account is unblocked.").waitFor();
  await buyer.check();
  await seller.check();
});
