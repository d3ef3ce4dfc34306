// Rate limits, and budgets of some calls only, in the dashboard and the portal.
import { after, test } from "node:test";
import assert from "node:assert/strict";
import { accessible, browser, call, open, settled, shop, shots, show, signIn } from "./setup.mjs";

after(() => browser.close());

const chat = (key, pairs) =>
  fetch(shop.url + "/v1/chat/completions", {
    method: "POST",
    headers: { Authorization: "Bearer " + key, "Content-Type": "application/json", "X-Gateway-Attribution": pairs },
    body: JSON.stringify({ model: "openai/gpt-5-mini", messages: [{ role: "user", content: "hi" }] }),
  }).then((r) => r.status);

const unavailable = { status: 503, headers: { "X-Gateway-Request-Id": "01a1feca-0000-7000-8000-000000000000", "Content-Type": "application/json" }, body: '{"error":{"type":"unavailable","message":"the database does not answer"}}' };

test("limits: set for each end user, met, changed and removed, on a telephone", async () => {
  const { page, check } = await open({ width: 390 });
  await signIn(page, "/dashboard", shop.manager);
  await show(page, "/dashboard/limits");
  await page.getByText("Set one so that nobody takes more than their part").waitFor();
  await page.getByRole("button", { name: "Set limit" }).first().click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Calls that count").selectOption("tag");
  await dialog.getByLabel("Attribution").fill("end user");
  await dialog.getByText("Only letters, digits, _, . and -.").waitFor();
  await dialog.getByLabel("Attribution").fill("end_user");
  await dialog.getByLabel("What").selectOption("tokens");
  assert.deepEqual(await dialog.getByLabel("Each").locator("option").allInnerTexts(), ["Minute", "Hour", "Day"]);
  await dialog.getByLabel("What").selectOption("requests");
  await dialog.getByLabel("Each").selectOption("day");
  assert.equal(await dialog.getByLabel("At once").count(), 0);
  await dialog.getByLabel("Limit", { exact: true }).fill("1.5");
  await dialog.getByText("A whole number from 1 to 1,000,000,000.").waitFor();
  assert.ok(await dialog.getByRole("button", { name: "Save" }).isDisabled());
  await dialog.getByLabel("Limit", { exact: true }).fill("1");
  await accessible(page, "the form of a limit");
  await page.screenshot({ path: `${shots}/flow-limit-set.png` });
  await dialog.getByRole("button", { name: "Save" }).click();
  await page.getByText("1 requests a day").waitFor();
  assert.deepEqual((await call(shop.manager, "GET /gw/limits")).json, [{ scope: "client", match: "tag:end_user=*", unit: "requests", window: "day", limit: 1 }]);
  assert.equal(await chat(shop.customer, "end_user=ann"), 200);
  assert.equal(await chat(shop.customer, "end_user=ann"), 429);
  assert.equal(await chat(shop.customer, "end_user=bob"), 200);
  await page.getByRole("button", { name: /^Actions for the limit of/ }).click();
  await page.getByRole("menuitem", { name: "Change…" }).click();
  await dialog.getByLabel("Limit", { exact: true }).fill("2");
  await dialog.getByRole("button", { name: "Save" }).click();
  await page.getByText("2 requests a day").waitFor();
  await accessible(page, "limits");
  assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 390);
  await page.getByRole("button", { name: /^Actions for the limit of/ }).click();
  await page.getByRole("menuitem", { name: "Remove…" }).click();
  await dialog.getByRole("button", { name: "Remove" }).click();
  await page.getByText("Set one so that nobody takes more than their part").waitFor();
  assert.deepEqual((await call(shop.manager, "GET /gw/limits")).json, []);
  await check();
});

test("limits: what is used, what somebody else has set, and what is not answered", async () => {
  const { page, check } = await open({ fine: [/503 \(/] });
  const own = (await call(shop.customer, "GET /gw/me")).json.api_key.id;
  assert.equal((await call(shop.manager, "PUT /gw/limits", { scope: "client", unit: "tokens", window: "minute", limit: 1e6, burst: 2e6 })).status, 204);
  assert.equal((await call(shop.customer, "PUT /gw/limits", { scope: "key", id: own, unit: "requests", window: "day", limit: 900 })).status, 204);
  await signIn(page, "/dashboard", shop.manager);
  let state = "away";
  await page.route("**/gw/limits", (route) => (state === "away" ? route.fulfill(unavailable) : route.continue()));
  await page.getByRole("link", { name: "Limits" }).click();
  assert.match(await page.getByRole("alert").innerText(), /the database does not answer/i);
  state = "there";
  await page.getByRole("button", { name: "Try again" }).click();
  const set = page.getByRole("region", { name: "Limits that are set" });
  await set.getByText("1,000,000 tokens a minute").waitFor();
  assert.match(await set.getByText("at once").innerText(), /2,000,000 at once/);
  assert.equal(await set.getByRole("meter").count(), 1); // of the other one this key's calls use nothing
  const customers = set.getByRole("row", { name: /900 requests a day/ });
  await customers.getByText("the customer").waitFor();
  await customers.getByRole("button", { name: /^Actions/ }).click();
  assert.equal(await page.getByRole("menuitem", { name: "Change…" }).count(), 0);
  await page.getByRole("menuitem", { name: "Remove…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
  await customers.waitFor({ state: "detached" });
  await page.getByRole("region", { name: "Limits that bind calls of this key" }).getByRole("meter").waitFor();
  await accessible(page, "limits");
  await page.screenshot({ path: `${shots}/flow-limits.png` });
  await check();
});

test("limits in the portal: what binds, and one's own", async () => {
  const { page, check } = await open({ width: 390 });
  const own = (await call(shop.customer, "GET /gw/me")).json.api_key.id;
  assert.equal((await call(shop.manager, "PUT /gw/limits", { scope: "key", id: own, unit: "requests", window: "hour", limit: 1000 })).status, 204);
  await signIn(page, "/p/" + shop.portal, shop.customer);
  await show(page, "/p/" + shop.portal + "/limits");
  const set = page.getByRole("region", { name: "Limits that are set" });
  await set.getByText("1,000 requests an hour").waitFor();
  assert.equal(await set.getByRole("button", { name: /^Actions/ }).count(), 0);
  assert.equal(await page.getByText("tokens a minute").count(), 0); // the organization's
  await page.getByRole("region", { name: "Limits that bind calls of this key" }).getByText("1,000 requests an hour").waitFor();
  await page.getByRole("button", { name: "Set limit" }).first().click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Key", { exact: true }).selectOption(own);
  await dialog.getByLabel("What").selectOption("concurrency");
  await dialog.getByLabel("Limit", { exact: true }).fill("7");
  await dialog.getByRole("button", { name: "Save" }).click();
  await set.getByText("7 calls at once").waitFor();
  await accessible(page, "limits in the portal");
  assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 390);
  await check();
});

test("budgets: of each end user, softly, with alerts of its own, and what each has spent", async () => {
  const { page, check } = await open({ width: 390 });
  await signIn(page, "/dashboard", shop.manager);
  await show(page, "/dashboard/budgets");
  await page.getByRole("button", { name: "Set budget" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Calls that count").selectOption("tag");
  assert.ok(await dialog.getByRole("button", { name: "Save" }).isDisabled());
  await dialog.getByLabel("Attribution").fill("end_user");
  await dialog.getByLabel("Each", { exact: true }).selectOption("week");
  await dialog.getByLabel("Limit").fill("5");
  await dialog.getByLabel("Once it is used up").selectOption("soft");
  await dialog.getByLabel("Alerts at, %").fill("100, 300");
  await dialog.getByText("At most eight whole numbers").waitFor();
  await dialog.getByLabel("Alerts at, %").fill("100, 120");
  await accessible(page, "the form of a budget");
  await dialog.getByRole("button", { name: "Save" }).click();
  await page.getByText("tag:end_user=*").waitFor();
  const { alerts, mode, window, match } = (await call(shop.manager, "GET /gw/budgets")).json.find((b) => b.match);
  assert.deepEqual({ alerts, mode, window, match }, { alerts: [100, 120], mode: "soft", window: "week", match: "tag:end_user=*" });
  await page.getByText("Soft, alerts at 100, 120 %").waitFor();
  assert.equal(await chat(shop.customer, "end_user=ann"), 200);
  assert.equal(await chat(shop.customer, "end_user=bob"), 200);
  await show(page, "/dashboard/budgets");
  await page.getByText("2 values, each with the whole limit").waitFor();
  const card = page.locator(".budget", { hasText: "tag:end_user=*" });
  await card.getByRole("button", { name: /^Actions/ }).click();
  await page.getByRole("menuitem", { name: "Each value…" }).click();
  await dialog.getByText("ann", { exact: true }).waitFor();
  await settled(page);
  await accessible(page, "the values of a budget");
  await page.screenshot({ path: `${shots}/flow-budget-values.png` });
  await page.keyboard.press("Escape");
  await card.getByRole("button", { name: /^Actions/ }).click();
  await page.getByRole("menuitem", { name: "Change…" }).click();
  await dialog.getByLabel("Once it is used up").selectOption("hard");
  await dialog.getByLabel("Alerts at, %").fill("");
  await dialog.getByRole("button", { name: "Save" }).click();
  await page.getByText("no alerts").waitFor();
  await check();
});
