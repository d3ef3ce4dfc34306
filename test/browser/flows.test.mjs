// What people do in the dashboard, on the real gateway with a simulated
// provider behind it.
import { after, test } from "node:test";
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { accessible, browser, call, downloaded, lines, open, pasted, settled, shop, shots, show, signIn, until } from "./setup.mjs";

after(() => browser.close());

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
  await page.getByRole("button", { name: "Sign in" }).waitFor();
  await page.reload();
  await page.getByRole("button", { name: "Sign in" }).waitFor();
  await check();
});

test("a customer's key is sent to its portal, and nobody else's is let in there", async () => {
  const { page, check } = await open({ fine: [/403 \(Forbidden\)/, /404 \(Not Found\)/] });
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
  await check();
});

test("overview: periods, figures as table and CSV, all calls", async () => {
  const { page, check } = await open();
  await signIn(page, "/dashboard", shop.manager);
  await settled(page);
  for (const period of ["24 h", "30 days", "90 days", "7 days"]) {
    await page.getByText(period, { exact: true }).first().click();
    await page.getByRole("img", { name: `Spend over the last ${period}` }).waitFor(); // exactly one
    await settled(page);
  }
  await page.getByLabel("By", { exact: true }).selectOption("day");
  await page.getByRole("button", { name: /^Requests/ }).click();
  const chart = page.getByRole("img", { name: /Requests over the last 7 days/ });
  await chart.focus();
  await page.keyboard.press("End");
  assert.match(await page.locator(".tip").innerText(), /Succeeded[\s\S]*Failed[\s\S]*Total/);
  await page.locator("fieldset", { hasText: "Chart" }).getByText("Table").click();
  const rows = await page.getByRole("region", { name: "Requests" }).locator("tbody tr").count();
  assert.equal(rows, 7);
  const file = await downloaded(page, () => page.locator("section", { hasText: "Chart" }).getByRole("button", { name: "CSV" }).click());
  assert.match(file.text, /^Day,Succeeded,Failed\r\n/);
  const days = lines(file.text);
  assert.equal(days.length, 7);
  const series = (await call(shop.manager, "GET /gw/series?since=7d&interval=day")).json;
  assert.equal(Number(days.at(-1).at(-2)), series.at(-1).requests - series.at(-1).errors);
  for (const [tile, label] of [["Error rate", /Error rate over/], ["Latency, p95", /Latency, p95 over/]]) {
    await page.getByRole("button", { name: new RegExp("^" + tile) }).click();
    await page.locator("fieldset", { hasText: "Chart" }).getByText("Chart").click();
    await page.getByRole("img", { name: label }).waitFor();
  }
  await check();
});

test("overview: groups over time add up to all calls", async () => {
  const { page, check } = await open();
  await signIn(page, "/dashboard", shop.manager);
  const cards = { model_slug: "openai/gpt-5", author: "anthropic", provider: "gemini", sub_account_id: "All others", key_id: /^gw_live_.{8}…$/, region: "us", team: "support" };
  const metrics = { spend: (s) => s.total_cost_usd, requests: (s) => s.requests, tokens: (s) => s.total_tokens };
  const all = (await call(shop.manager, "GET /gw/series?since=6d&interval=day")).json;
  for (const [group, legend] of Object.entries(cards)) {
    for (const [metric, of] of Object.entries(metrics)) {
      if (metric !== "spend" && !["model_slug", "sub_account_id"].includes(group)) continue;
      await show(page, `/dashboard?metric=${metric}&group=${group}`);
      const entries = await page.locator(".legend li").allInnerTexts();
      assert.ok(entries.length <= 8 && entries.some((e) => (legend.test ? legend.test(e) : e === legend)), `${metric} by ${group}: ${entries}`);
      await page.locator("fieldset", { hasText: "Chart" }).getByText("Table").click();
      const file = await downloaded(page, () => page.locator("section", { hasText: "Chart" }).getByRole("button", { name: "CSV" }).click());
      const days = lines(file.text).map((cells) => cells.slice(1).reduce((sum, c) => sum + Number(c), 0));
      assert.equal(days.length, 7);
      const got = days.reduce((a, b) => a + b), want = all.reduce((sum, s) => sum + of(s), 0);
      assert.ok(Math.abs(got - want) < 1e-6 * want, `${metric} by ${group}: ${got} of ${want}`);
      // The table below has every group, and the same sum.
      const below = await downloaded(page, () => page.getByRole("button", { name: "CSV" }).last().click());
      const column = { requests: 1, tokens: 2, spend: 3 }[metric];
      const sum = lines(below.text).reduce((total, cells) => total + Number(cells[column]), 0);
      assert.ok(Math.abs(sum - want) < 1e-6 * want, `${metric} by ${group}, below: ${sum} of ${want}`);
      if (metric !== "spend") continue;
      await page.locator("fieldset", { hasText: "Chart" }).getByText("Chart").click();
      await page.getByRole("img", { name: /Spend over/ }).focus();
      await page.keyboard.press("End");
      if (entries.length > 1) assert.match(await page.locator(".tip").innerText(), /Total/);
      await page.screenshot({ path: `${shots}/flow-overview-${group}.png` });
    }
  }
  await page.getByLabel("By", { exact: true }).selectOption("*");
  await page.getByLabel("Attribution key").fill("env");
  await page.keyboard.press("Enter");
  await page.locator("table").last().getByText("prod", { exact: true }).waitFor();
  await check();
});

test("usage: the address holds the filters, and calls appear by themselves", async () => {
  const { page, check } = await open();
  await signIn(page, "/dashboard", shop.manager);
  const issued = (await call(shop.manager, "POST /gw/keys", { scopes: ["inference:use"], name: "Live test" })).json;
  await show(page, "/dashboard/usage");
  await page.getByLabel("Key", { exact: true }).selectOption({ label: "Live test" });
  await page.getByLabel("Status").selectOption("ok");
  await page.getByLabel("Model").fill("openai/gpt-5-mini");
  await page.getByRole("button", { name: "Filter", exact: true }).click();
  await page.getByText("No call matches").waitFor();
  const { searchParams } = new URL(page.url());
  assert.deepEqual([searchParams.get("key"), searchParams.get("status"), searchParams.get("model")], [issued.api_key_id, "ok", "openai/gpt-5-mini"]);
  const answer = await fetch(shop.url + "/v1/chat/completions", {
    method: "POST", body: JSON.stringify({ model: "openai/gpt-5-mini", messages: [{ role: "user", content: "hi" }] }),
    headers: { Authorization: "Bearer " + issued.key, "Content-Type": "application/json" },
  });
  assert.equal(answer.status, 200);
  const row = page.getByRole("region", { name: "Calls" }).locator("tbody tr");
  await row.filter({ hasText: "Live test" }).waitFor();
  assert.equal(await row.count(), 1);
  await check();
});

// sumOf is what the calls behind an address of Usage come to, as the API has them.
async function sumOf(page) {
  await page.getByRole("heading", { level: 1, name: "Usage" }).waitFor();
  await settled(page);
  const href = await page.getByRole("link", { name: "CSV" }).getAttribute("href");
  const path = href.replace(/^\/dashboard/, "").replace("&format=csv", "");
  let [requests, cost] = [0, 0];
  for (let cursor = ""; ; ) {
    const answer = await fetch(`${shop.url}${path}&limit=1000${cursor}`, { headers: { Authorization: "Bearer " + shop.manager } });
    for (const row of await answer.json()) [requests, cost] = [requests + 1, cost + row.cost_usd];
    if (!answer.headers.get("X-Next-Cursor")) return { requests, cost };
    cursor = "&cursor=" + answer.headers.get("X-Next-Cursor");
  }
}

test("every mark opens exactly its calls", async () => {
  const { page, check } = await open({ width: 1440 });
  await signIn(page, "/dashboard", shop.manager);
  const figure = (text) => Number(text.replaceAll(",", "").replace(/^\$/, ""));
  // A cell of the overview's chart, as a table: one day of one model, or of one status.
  for (const [address, path] of [["?metric=requests&group=model_slug&view=table", "model="], ["?metric=requests&group=day&view=table", "status="]]) {
    await show(page, "/dashboard" + address);
    const cell = page.getByRole("region", { name: /^Requests/ }).locator("td a").first();
    const want = figure(await cell.innerText());
    await cell.click();
    assert.equal((await sumOf(page)).requests, want, address);
    assert.ok(new URL(page.url()).search.includes(path) && new URL(page.url()).search.includes("from="), page.url());
  }
  // A bar: what its tip says in total is behind it.
  await show(page, "/dashboard?metric=requests&group=day");
  const chart = page.getByRole("img", { name: /Requests over/ });
  await chart.focus();
  await page.keyboard.press("End");
  const total = figure((await page.locator(".tip .sum").innerText()).replace(/[^0-9,]/g, ""));
  await page.keyboard.press("Enter");
  assert.equal((await sumOf(page)).requests, total);
  // An entry of the legend, a row of the table below, the tile's own link.
  await show(page, "/dashboard?group=provider");
  const entry = page.locator(".legend a").first();
  const name = await entry.innerText();
  await entry.click();
  assert.match(page.url(), new RegExp(`provider=${name}`));
  for (const [group, filter] of [["model_slug", "model="], ["key_id", "key="], ["sub_account_id", "customer="], ["team", "tag=team%3A"]]) {
    await show(page, "/dashboard?group=" + group);
    const row = page.getByRole("region", { name: /^By / }).locator("tbody tr", { has: page.locator("td.end a") }).first();
    const want = figure(await row.locator("td.end a").innerText());
    await row.locator("td.end a").click();
    assert.equal((await sumOf(page)).requests, want, group);
    assert.ok(page.url().includes(filter), page.url());
  }
  await show(page, "/dashboard?metric=errors");
  await page.getByRole("link", { name: "Calls", exact: true }).click();
  assert.match(page.url(), /status=failed/);
  await settled(page);
  assert.ok((await page.getByRole("region", { name: "Calls" }).locator("tbody .badge").allInnerTexts()).every((t) => !/^2/.test(t)));
  // A budget.
  await show(page, "/dashboard/budgets");
  await page.locator(".budget .figure a").first().click();
  await sumOf(page);
  await check();
});

test("usage: figures over the same filters, grouped twice, summed up, and the address holds all of it", async () => {
  const { page, check } = await open({ width: 1440 });
  await signIn(page, "/dashboard", shop.manager);
  await show(page, "/dashboard/usage?since=30d&provider=openai");
  await page.getByLabel("Figure").selectOption("requests");
  await page.getByLabel("Group by").selectOption("model");
  await page.getByLabel("Then by").selectOption("status");
  await page.getByLabel("Cumulative").check();
  await page.locator("fieldset", { hasText: "Chart" }).getByText("Table").click();
  await settled(page);
  const { searchParams } = new URL(page.url());
  assert.deepEqual(["since", "provider", "metric", "by", "then", "sum", "view"].map((n) => searchParams.get(n)), ["30d", "openai", "requests", "model", "status", "1", "table"]);
  const table = page.getByRole("region", { name: "Over time" });
  const last = async () => (await table.locator("tbody tr").last().locator("td").allInnerTexts()).reduce((sum, t) => sum + Number(t.replaceAll(",", "")), 0);
  const want = (await call(shop.manager, "GET /gw/report?since=30d&provider=openai")).json.totals.requests;
  assert.equal(await last(), want);
  assert.match(await table.locator("thead").innerText(), /openai\/.* · \d{3}/);
  await page.reload();
  await settled(page);
  assert.equal(await last(), want);
  await page.getByLabel("Period").selectOption("last-month");
  await settled(page);
  await page.getByLabel("Period").selectOption("own");
  await page.getByLabel("From (UTC)").fill("2000-12-01");
  await page.getByLabel("Until (UTC)").fill("2001-01-01");
  await page.getByRole("button", { name: "Clear filters" }).click();
  await settled(page);
  assert.equal(new URL(page.url()).search, "");
  await check();
});

test("figures stay while the gateway does not answer, and say as of when", async () => {
  const { page, context, check } = await open({ fine: [/ERR_FAILED/] });
  await page.clock.install();
  await signIn(page, "/dashboard", shop.manager);
  await show(page, "/dashboard/usage");
  const rows = await page.getByRole("region", { name: "Calls" }).locator("tbody tr").count();
  await context.route("**/gw/calls*", (route) => route.abort());
  await page.clock.fastForward(11_000);
  await page.getByText(/As of \d\d:\d\d:\d\d UTC: the gateway does not answer/).waitFor();
  assert.equal(await page.getByRole("region", { name: "Calls" }).locator("tbody tr").count(), rows);
  await context.unroute("**/gw/calls*");
  await page.clock.fastForward(61_000);
  await page.getByText(/As of/).waitFor({ state: "detached" });
  await check();
});

test("Ctrl K goes to pages, customers, models, a key by its secret, which stays here, and a call by its id", async () => {
  const { page, check } = await open();
  const sent = [];
  page.on("request", (r) => sent.push(r.url() + (r.postData() ?? "")));
  await signIn(page, "/dashboard", shop.manager);
  const at = sent.length;
  const issued = (await call(shop.manager, "POST /gw/keys", { scopes: ["inference:use"], name: "Palette test" })).json;
  const id = (await call(shop.manager, "GET /gw/calls?limit=1")).json[0].id;
  const into = async (text, heading) => {
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Go to" }).fill(text);
    await page.getByRole("dialog", { name: "Go to" }).getByRole("option", { selected: true }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog", { name: "Go to" }).waitFor({ state: "detached" });
    await page.getByRole("heading", { level: 1, name: heading }).waitFor();
  };
  await into("budg", "Budgets");
  await into("globex", /^Globex/);
  await into("gemini-2.5", "Models");
  await page.keyboard.press("Escape");
  await into(issued.key, /^Palette test/);
  assert.ok(!sent.slice(at).some((s) => s.includes(issued.key)), "the secret was sent");
  await into(id, "Usage");
  await page.getByRole("dialog", { name: "Call" }).getByText(id).waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Go to" }).fill("no such thing");
  await page.getByText("Nothing is called so.").waitFor();
  await accessible(page, "go to");
  await page.screenshot({ path: `${shots}/flow-palette.png` });
  await check();
});

test("a key has a page: figures, calls, and the way from its customer", async () => {
  const { page, check } = await open();
  await signIn(page, "/dashboard", shop.manager);
  await show(page, "/dashboard?group=key_id&period=30d");
  await page.getByRole("region", { name: /^By / }).locator("td.end a").first().click();
  const id = new URL(page.url()).searchParams.get("key");
  const key = (await call(shop.manager, "GET /gw/keys?q=" + id)).json[0];
  await show(page, "/dashboard/keys/" + id);
  await page.getByRole("heading", { level: 1, name: new RegExp("^" + (key.name ?? key.key_prefix)) }).waitFor();
  const totals = (await call(shop.manager, `GET /gw/report?since=30d&key_id=${id}`)).json.totals;
  await page.getByText(new RegExp(`^${totals.requests.toLocaleString("en-US")} calls?`)).waitFor();
  assert.ok((await page.getByRole("region", { name: "Newest calls" }).locator("tbody tr").count()) > 0);
  await page.screenshot({ path: `${shots}/flow-key.png`, fullPage: true });
  await accessible(page, "key");
  await page.getByRole("link", { name: "All calls" }).click();
  await page.waitForURL(new RegExp("key=" + id));
  await check();
});

test("usage: filters, paging, a row's detail, CSV of all that matches", async () => {
  const { page, check } = await open({ fine: [/400 \(Bad Request\)/] });
  await signIn(page, "/dashboard", shop.manager);
  await show(page, "/dashboard/usage?since=90d");
  const table = page.getByRole("region", { name: "Calls" }).locator("tbody tr");
  assert.equal(await table.count(), 100);
  await page.getByRole("button", { name: "Load more" }).click();
  await page.getByText("300 calls").waitFor();
  const file = await downloaded(page, () => page.getByRole("link", { name: "CSV" }).click());
  const all = [];
  for (let cursor = ""; ; ) {
    const answer = await fetch(`${shop.url}/gw/calls?since=90d&limit=1000${cursor}`, { headers: { Authorization: "Bearer " + shop.manager } });
    all.push(...(await answer.json()).map((r) => r.id));
    if (!answer.headers.get("X-Next-Cursor")) break;
    cursor = "&cursor=" + answer.headers.get("X-Next-Cursor");
  }
  assert.ok(all.length > 300);
  assert.deepEqual(file.text.trim().split("\r\n").slice(1).map((line) => line.split(",")[0]), all);
  await page.getByLabel("Provider").fill("gemini");
  await page.getByRole("button", { name: "Filter", exact: true }).click();
  await settled(page);
  assert.ok((await table.allInnerTexts()).every((t) => t.includes("gemini")));
  await page.getByLabel("State of the books").selectOption("partial");
  await settled(page);
  assert.ok((await table.allInnerTexts()).every((t) => t.includes("gemini") && t.includes("partial")));
  await page.getByRole("button", { name: "Clear", exact: true }).click();
  await settled(page);
  await table.filter({ hasText: "team=" }).first().click();
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
  await check();
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
  assert.ok((await page.getByLabel("A first call").innerText()).includes('"openai/gpt-5-mini"')); // which this key may call
  assert.equal((await pasted(await page.getByLabel("A first call").innerText(), secret)).status, 200);
  await page.screenshot({ path: `${shots}/flow-key-issued.png` });
  for (let i = 0; i < 3; i++) await page.keyboard.press("Escape"); // not by accident
  await page.evaluate(() => document.querySelector("dialog").close()); // nor by a browser that insists
  await page.waitForFunction(() => document.querySelector("dialog").open);
  assert.ok(await page.getByTestId("secret").isVisible());
  await page.getByRole("button", { name: "I have stored it" }).click();
  assert.ok(!(await page.content()).includes(secret));
  const chat = (model) => call(secret, "POST /v1/chat/completions", { model, messages: [{ role: "user", content: "hello" }] });
  assert.equal((await chat("openai/gpt-5-mini")).status, 200);
  assert.equal((await chat("openai/gpt-5")).status, 403);
  assert.equal((await call(secret, "GET /gw/keys")).status, 403);
  await page.getByLabel("Find a key").fill(secret.slice(0, 16));
  const actions = page.getByRole("button", { name: `Actions for key ${secret.slice(0, 16)}` });
  await actions.click();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog", { name: "Revoke this key?" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  assert.ok(await actions.evaluate((e) => e === document.activeElement), "the focus is not back on the menu");
  await actions.click();
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Revoke key" }).click();
  await page.getByText("No key matches").waitFor();
  assert.equal((await chat("openai/gpt-5-mini")).status, 401);
  await page.getByText("Revoked", { exact: true }).click();
  await page.getByText(secret.slice(0, 16)).waitFor();
  await check();
});

test("keys: the form offers what the ceiling allows, and the gateway agrees", async () => {
  const { page, check } = await open({ fine: [/403 \(Forbidden\)/] });
  await signIn(page, "/dashboard", shop.bounded);
  await show(page, "/dashboard/keys");
  await page.getByRole("button", { name: "Issue key" }).click();
  const dialog = page.getByRole("dialog");
  const reads = dialog.getByRole("checkbox", { name: /stats:read/ });
  await dialog.getByText("Above the organization's ceiling.").waitFor();
  assert.ok(await reads.isDisabled());
  assert.ok(await dialog.getByRole("checkbox", { name: /keys:manage/ }).isEnabled());
  const kinds = await dialog.getByRole("group", { name: "Except all models of the kind" }).getByRole("checkbox").evaluateAll((all) => all.map((e) => e.closest("label").textContent));
  assert.deepEqual(kinds, ["audio", "embedding", "llm", "video"]);
  await dialog.getByText("Only some").click();
  const offered = await dialog.getByRole("group", { name: "Models the key may call" }).locator("label").allInnerTexts();
  const ceiling = (await call(shop.bounded, "GET /gw/models")).json.models.filter((m) => m.allowed).map((m) => m.slug);
  assert.deepEqual(offered, ceiling);
  assert.ok(offered.includes("openai/gpt-5") && !offered.some((m) => m.startsWith("anthropic/") || m.includes("image")));
  for (const m of offered) await dialog.getByLabel(m, { exact: true }).check();
  await page.screenshot({ path: `${shots}/flow-key-ceiling.png` });
  await dialog.getByRole("button", { name: "Issue key" }).click();
  const secret = await page.getByTestId("secret").innerText();
  assert.deepEqual((await call(secret, "GET /gw/me")).json.scopes, ["inference:use"]);
  await page.getByRole("button", { name: "I have stored it" }).click();
  // All of the ceiling but a kind, until a week has passed.
  await page.getByRole("button", { name: "Issue key" }).click();
  await dialog.getByLabel("audio", { exact: true }).check();
  await dialog.getByRole("button", { name: "Issue key" }).click();
  const other = await page.getByTestId("secret").innerText();
  assert.equal((await call(other, "POST /v1/audio/speech", { model: "openai/tts-1", input: "x", voice: "alloy" })).status, 403);
  assert.equal((await call(other, "POST /v1/embeddings", { model: "openai/text-embedding-3-small", input: "x" })).status, 200);
  await page.getByRole("button", { name: "I have stored it" }).click();
  // What asks for more than the ceiling is refused, whoever asks.
  const answer = await page.evaluate(async () => (await fetch("/dashboard/gw/keys", { method: "POST", headers: { "Content-Type": "application/json" }, body: '{"scopes":["stats:read"]}' })).status);
  assert.equal(answer, 403);
  await check();
});

test("by keyboard alone: a key is issued, found, and revoked", async () => {
  const { page, check } = await open();
  await signIn(page, "/dashboard", shop.manager);
  const press = async (...keys) => {
    for (const k of keys) await page.keyboard.press(k);
  };
  const reach = async (name) => {
    for (let i = 0; i < 80; i++) {
      const at = await page.evaluate(() => document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent);
      if (at.trim() === name) return;
      await press("Tab");
    }
    assert.fail("the keyboard does not reach " + name);
  };
  await reach("Keys");
  await press("Enter");
  await page.getByRole("heading", { level: 1, name: "Keys" }).waitFor();
  await settled(page);
  await reach("Issue key");
  await press("Enter");
  const dialog = page.getByRole("dialog");
  await dialog.getByText("of the catalog's").waitFor();
  // The focus stays in the dialog, however often it is moved.
  for (let i = 0; i < 30; i++) {
    await press("Tab");
    assert.ok(await page.evaluate(() => document.activeElement === document.body || !!document.activeElement.closest("dialog")), "the focus left the dialog");
  }
  await press("Escape");
  await dialog.waitFor({ state: "detached" });
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Issue key"); // back where it was
  await press("Enter");
  await dialog.getByRole("button", { name: "Issue key" }).focus();
  await press("Enter");
  const secret = await page.getByTestId("secret").innerText();
  await reach("I have stored it");
  await press("Enter");
  await page.getByLabel("Find a key").focus();
  await page.keyboard.type(secret.slice(0, 16));
  await settled(page);
  await reach(`Actions for key ${secret.slice(0, 16)}`);
  await press("Enter", "ArrowDown", "ArrowUp", "Escape");
  assert.equal(await page.getByRole("menu").count(), 0);
  await press("Enter", "Enter");
  await page.getByRole("dialog", { name: "Revoke this key?" }).waitFor();
  await reach("Revoke key");
  await press("Enter");
  await page.getByText("No key matches").waitFor();
  assert.equal((await call(secret, "GET /gw/me")).status, 401);
  // Periods are radio buttons: arrows choose.
  await show(page, "/dashboard");
  await page.locator("fieldset", { hasText: "24 h" }).locator("input:checked").focus();
  await press("ArrowRight");
  await page.getByRole("img", { name: /over the last 30 days/ }).waitFor();
  assert.match(page.url(), /period=30d/);
  await check();
});

test("customers: spend and margin, add, price, issue, suspend, resume", async () => {
  const { page, check } = await open({ fine: [/409 \(Conflict\)/] });
  await signIn(page, "/dashboard", shop.manager);
  await show(page, "/dashboard/customers");
  const globex = await page.locator("tr", { hasText: "Globex" }).innerText();
  assert.match(globex, /15%[\s\S]*\$\d/);
  // Spend is what was booked; billed and margin follow from the markup.
  const sheet = lines((await downloaded(page, () => page.getByRole("button", { name: "CSV" }).click())).text);
  const began = Date.now() - (Math.floor(Date.now() / 86_400_000) - 29) * 86_400_000; // 30 days of which today is one
  const booked = new Map((await call(shop.manager, `GET /gw/stats?group_by=sub_account_id&since=${began}ms`)).json.map((b) => [b.key, b]));
  const known = (await call(shop.manager, "GET /gw/subaccounts")).json;
  assert.equal(sheet.length, known.length);
  assert.ok(sheet.every((cells) => cells.slice(4, 7).every((c) => /^\d+(\.\d{1,9})?$/.test(c))), "amounts to the nano-dollar");
  for (const c of known) {
    const [, , markup, requests, cost, billed, margin] = sheet.find((cells) => cells[0] === c.name).map(Number);
    const spent = booked.get(c.id)?.total_cost_usd ?? 0;
    assert.equal(requests, booked.get(c.id)?.requests ?? 0, c.name);
    assert.ok(markup === c.markup_pct && Math.abs(cost - spent) < 1e-9 && Math.abs(billed - spent * (1 + markup / 100)) < 1e-9 && Math.abs(margin - (billed - cost)) < 2.5e-9, c.name);
  }
  // The overview says the same of the same 30 days.
  await show(page, "/dashboard?period=30d&group=sub_account_id");
  const overview = new Map(lines((await downloaded(page, () => page.getByRole("button", { name: "CSV" }).last().click())).text).map((cells) => [cells[0], cells]));
  for (const [name, , , requests, cost] of sheet) {
    if (requests === "0") continue;
    assert.deepEqual([overview.get(name)[1], overview.get(name)[3]], [requests, cost], name);
  }
  await show(page, "/dashboard/customers");
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
  await page.getByText("Suspended: its keys are refused").waitFor();
  assert.match(await page.getByRole("region", { name: /^Keys of/ }).innerText(), /suspended/);
  const keys = lines((await downloaded(page, () => page.getByRole("button", { name: "CSV" }).last().click())).text);
  assert.deepEqual(keys.map((cells) => cells[0]), [secret.slice(0, 16)]);
  await page.screenshot({ path: `${shots}/flow-customer-suspended.png` });
  assert.equal((await call(secret, "GET /gw/me")).status, 401);
  const refused = await open();
  await refused.page.goto(shop.url + "/p/" + shop.portal);
  await refused.page.getByLabel("Key").fill(secret);
  await refused.page.keyboard.press("Enter");
  await refused.page.getByText("or of a suspended account").waitFor();
  await refused.check();
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
  await check();
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
  await page.getByRole("menuitem", { name: "Change…" }).click();
  await page.getByLabel("Limit").fill("500");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("of $500.00").waitFor();
  await page.getByRole("button", { name: "Actions for the budget of Initech by the day" }).click();
  await page.getByRole("menuitem", { name: "Remove…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
  await meter.waitFor({ state: "detached" });
  await check();
});

test("budgets: the fullest first, and one is found among many", async () => {
  const { page, check } = await open();
  const known = (await call(shop.manager, "GET /gw/keys")).json.filter((k) => k.status === "active").slice(0, 30);
  for (const k of known) assert.equal((await call(shop.manager, "PUT /gw/budgets", { scope: "key", id: k.id, period: "month", limit_usd: 100 })).status, 204);
  await signIn(page, "/dashboard", shop.manager);
  await show(page, "/dashboard/budgets");
  const cards = page.locator("section", { has: page.getByRole("heading", { name: "Keys", exact: true }) }).locator(".budget");
  assert.equal(await cards.count(), 24);
  const fills = await cards.getByRole("meter").evaluateAll((all) => all.map((e) => Number(e.getAttribute("aria-valuenow"))));
  assert.deepEqual(fills, fills.toSorted((a, b) => b - a));
  await page.getByRole("button", { name: /^Show all \d+$/ }).click();
  assert.ok((await cards.count()) >= 30);
  await page.getByLabel("Find a budget").fill(known[7].key_prefix);
  assert.equal(await page.locator(".budget").count(), 1);
  await page.screenshot({ path: `${shots}/flow-budget-find.png` });
  await page.getByLabel("Find a budget").fill("nobody has this name");
  await page.getByText("No budget matches").waitFor();
  for (const k of known) await call(shop.manager, `DELETE /gw/budgets?scope=key&id=${k.id}&period=month`);
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
  for (const [slug, want] of [["anthropic/claude-haiku-4.5", /simulated answer/], ["google/gemini-2.5-flash", /simulated answer/], ["openai/text-embedding-3-small", /dimensions/]]) {
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

test("models: every price is exact, and every call that is shown works when it is pasted", async () => {
  const { page, check } = await open();
  await signIn(page, "/dashboard", shop.manager);
  const known = (await call(shop.manager, "GET /gw/prices")).json;
  const doors = new Map(known.map((m) => [m.slug, m.door]));
  assert.equal(doors.get("anthropic/claude-haiku-4.5"), "/v1/messages");
  for (const m of known) {
    await show(page, "/dashboard/models?model=" + encodeURIComponent(m.slug));
    const dialog = page.getByRole("dialog");
    const text = await dialog.innerText();
    for (const p of m.prices) assert.ok(text.replaceAll(",", "").includes("$" + (Number.isInteger(p.usd * 100) ? p.usd.toFixed(2) : p.usd) + " / "), `${m.slug}: ${p.usd} in ${text}`);
    if (m.prices.length === 0) continue; // refused under a budget
    const shown = await dialog.getByLabel(/^A call of/).innerText();
    assert.ok(shown.startsWith(`curl ${shop.url}${m.door} `), shown);
    if (m.door === "/v1/videos") continue; // would be one more job; the shop has made some with the same call
    const answer = await pasted(shown, shop.manager);
    assert.equal(answer.status, 200, `${shown}: ${await answer.text()}`);
  }
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

test("jobs: rows, filters, detail, CSV", async () => {
  const { page, check } = await open();
  await signIn(page, "/dashboard", shop.manager);
  await until("two jobs end", async () => (await call(shop.manager, "GET /gw/async?scope=client")).json.data.filter((j) => j.status !== "pending").length === 2);
  await show(page, "/dashboard/jobs");
  const rows = page.getByRole("region", { name: "Jobs" }).locator("tbody tr");
  assert.equal(await rows.count(), 3);
  const sheet = lines((await downloaded(page, () => page.getByRole("button", { name: "CSV" }).click())).text);
  const known = (await call(shop.manager, "GET /gw/async?scope=client")).json.data;
  assert.deepEqual(sheet.map((c) => c[1]).sort(), known.map((j) => j.task_id).sort());
  for (const status of ["succeeded", "failed", "pending"]) {
    await page.getByLabel("Status").selectOption(status);
    await settled(page);
    assert.equal(await rows.count(), 1);
    const job = known.find((j) => j.status === status);
    assert.match(await rows.innerText(), new RegExp(`${job.task_id}[\\s\\S]*${status}[\\s\\S]*${{ succeeded: "\\$0\\.40", failed: "\\$0\\.00", pending: "≈ \\$0\\.40" }[status]}`));
  }
  await page.getByRole("button", { name: /^Details of job/ }).focus();
  await page.keyboard.press("Enter");
  const detail = page.getByRole("dialog", { name: "Job" });
  assert.match(await detail.innerText(), /pending[\s\S]*not known yet[\s\S]*not yet[\s\S]*Globex/);
  await accessible(page, "job detail");
  await page.screenshot({ path: `${shots}/flow-job.png` });
  await page.keyboard.press("Escape");
  await page.getByLabel("Kind").selectOption("audio");
  await page.getByText("No job matches").waitFor();
  await check();
});

test("evidence: download it, and the command that is copied verifies it", async () => {
  const { page, context, check } = await open();
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await signIn(page, "/dashboard", shop.manager);
  await show(page, "/dashboard/evidence");
  const file = await downloaded(page, () => page.getByRole("button", { name: "Download evidence" }).click());
  assert.ok(file.text.split("\n").slice(0, -1).every((line) => line.startsWith("{")));
  const shown = await page.getByLabel("Command that verifies the file").innerText();
  await page.getByRole("button", { name: "Copy" }).click();
  const command = await page.evaluate(() => navigator.clipboard.readText());
  assert.equal(command, shown);
  await page.screenshot({ path: `${shots}/flow-evidence.png` });
  assert.equal(await page.getByText("The file ends with record").count(), 0);
  const folder = mkdtempSync(tmpdir() + "/evidence-");
  try {
    const run = () => execFileSync("sh", ["-c", command.replace(/^modelgate /, '"$MODELGATE" ')], { cwd: folder, env: { ...process.env, MODELGATE: shop.modelgate }, encoding: "utf8", stdio: "pipe" });
    writeFileSync(`${folder}/${file.name}`, file.text);
    run();
    const all = file.text.split("\n");
    writeFileSync(`${folder}/${file.name}`, [...all.slice(0, 2), ...all.slice(3)].join("\n")); // without one record
    assert.throws(run);
  } finally {
    rmSync(folder, { recursive: true });
  }
  await check();
});

test("evidence: a file that does not hold all says where to go on", async () => {
  const { page, check } = await open();
  await signIn(page, "/dashboard", shop.manager);
  await show(page, "/dashboard/evidence");
  await page.route("**/gw/evidence?*", (route) => route.continue({ url: route.request().url().replace(/limit=\d+/, "limit=2") }));
  const press = () => page.getByRole("button", { name: "Download evidence" }).click();
  const numbers = (file) => file.text.split("\n").slice(1, 3).map((l) => JSON.parse(l).seq);
  assert.deepEqual(numbers(await downloaded(page, press)), [1, 2]);
  await page.getByText(/The file ends with record 2\. There are [\d,]+ newer records/).waitFor();
  await page.getByRole("button", { name: "Go on from record 3" }).click();
  assert.equal(await page.getByLabel("From record").inputValue(), "3");
  assert.deepEqual(numbers(await downloaded(page, press)), [3, 4]);
  await page.route("**/gw/evidence?*", (route) => route.fulfill({ status: 401, contentType: "application/json", body: '{"error":{"type":"unauthorized","message":"not signed in"}}' }));
  await press();
  await page.getByText("The session has ended").waitFor();
  await check();
});

test("billing: key, mappings, events and their retry", async () => {
  const { page, check } = await open({ fine: [/400 \(Bad Request\)/, /402 \(Payment Required\)/, /409 \(Conflict\)/, /50\d \(/] });
  await signIn(page, "/dashboard", shop.manager);
  await show(page, "/dashboard/billing");
  const mappings = page.getByRole("region", { name: "Mappings" });
  const act = async (customer, item) => {
    await page.getByRole("button", { name: "Actions for " + customer }).click();
    await page.getByRole("menuitem", { name: item }).click();
  };
  await act("Hooli", "Map to a customer…");
  await page.getByLabel("Customer id at the processor").fill("cus_hooli");
  await page.getByRole("button", { name: "Save" }).click();
  await mappings.getByText("cus_hooli").waitFor();
  await act("Hooli", "Unmap");
  await mappings.getByText("cus_hooli").waitFor({ state: "detached" });
  await act("Hooli", "Create at the processor");
  await mappings.locator("tr", { hasText: "Hooli" }).getByText(/^cus_\d+$/).waitFor();
  const sheet = lines((await downloaded(page, () => page.locator("section", { hasText: "Mappings" }).getByRole("button", { name: "CSV" }).click())).text);
  assert.deepEqual(sheet.find((c) => c[0] === "Globex"), ["Globex", "cus_globex"]);

  // The processor does not know Initech: its event failed, and says why.
  const events = page.getByRole("region", { name: "Events" });
  await until("an event fails", async () => (await call(shop.manager, "GET /gw/processor/events?status=failed")).json.events.length === 1);
  await show(page, "/dashboard/billing?events=failed");
  await events.locator("tbody tr").first().getByText("Initech").click();
  assert.match(await page.getByRole("dialog", { name: "Event" }).innerText(), /failed[\s\S]*Last error[\s\S]*resource_missing/);
  await accessible(page, "event");
  await page.keyboard.press("Escape");
  // It fails again when it is tried again, for it goes where it went.
  await page.getByRole("button", { name: "Retry" }).click();
  await until("the event is tried again", async () => (await call(shop.manager, "GET /gw/processor/events?status=failed")).json.events[0]?.attempts === 1);

  // With a key that the processor does not know events fail; with another
  // key they are sent on a retry.
  await page.getByRole("button", { name: "Replace API key" }).click();
  await page.getByRole("textbox", { name: "API key" }).fill("sk_test_nobody_has_this_one");
  await page.getByRole("button", { name: "Store", exact: true }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  const made = await fetch(shop.url + "/v1/chat/completions", { method: "POST", headers: { Authorization: "Bearer " + shop.customer, "Content-Type": "application/json" }, body: '{"model":"openai/gpt-5","messages":[{"role":"user","content":"[[words=50]]"}]}' });
  const id = made.headers.get("X-Gateway-Request-Id");
  const event = async () => (await call(shop.manager, "GET /gw/processor/events?limit=200")).json.events.find((e) => e.usage_record_id === id);
  await until("the event fails", async () => (await event())?.status === "failed");
  await page.getByRole("button", { name: "Replace API key" }).click();
  const box = page.getByRole("textbox", { name: "API key" });
  await box.fill(shop.seller);
  assert.equal(await box.getAttribute("type"), "password");
  await page.getByRole("button", { name: "Store", exact: true }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  assert.ok(!(await page.content()).includes(shop.seller));
  await show(page, "/dashboard/billing?events=failed");
  await page.screenshot({ path: `${shots}/flow-billing.png`, fullPage: true });
  await events.locator("tr", { hasText: "Globex" }).getByRole("button", { name: "Retry" }).click();
  await events.locator("tr", { hasText: "Globex" }).waitFor({ state: "detached" });
  await until("the event is sent", async () => (await event()).status === "sent");
  await page.locator("fieldset", { hasText: "Pending" }).getByText("Sent").click();
  await settled(page);
  const all = lines((await downloaded(page, () => page.locator("section", { hasText: "Events" }).last().getByRole("button", { name: "CSV" }).click())).text);
  assert.ok(all.some((cells) => cells.includes(id)) && all.every((cells) => cells.includes("sent")));
  await page.getByRole("button", { name: "Switch off" }).click();
  await page.getByRole("button", { name: "Switch on" }).waitFor();
  assert.equal((await call(shop.manager, "GET /gw/processor/config")).json.enabled, false);
  await page.getByRole("button", { name: "Switch on" }).click();
  await page.getByRole("button", { name: "Switch off" }).waitFor();
  await check();
});

test("a prepaid balance is topped up", async () => {
  const { page, check } = await open({ also: [shop.processor] });
  let paid;
  await page.route(shop.processor + "/**", (route) => {
    paid = route.request().url();
    return route.fulfill({ contentType: "text/html", body: "<title>Pay</title>" });
  });
  await signIn(page, "/dashboard", shop.prepaid);
  await page.getByText("Your balance is used up ($0.00): calls are refused.").waitFor();
  await accessible(page, "a balance that is used up");
  await page.getByRole("link", { name: "Top up" }).click();
  await settled(page);
  const balance = page.locator("section", { hasText: "Balance" }).locator(".figure").first();
  assert.equal(await balance.innerText(), "$0.00");
  for (const bad of ["4", "10001", "x"]) {
    await page.getByLabel("Top up by").fill(bad);
    await page.getByText("From $5.00 to $10,000.00, in whole cents.").waitFor();
    assert.ok(await page.getByRole("button", { name: "Go to payment" }).isDisabled());
  }
  await page.getByLabel("Top up by").fill("25");
  await accessible(page, "top up");
  await page.screenshot({ path: `${shots}/flow-balance.png` });
  await page.getByRole("button", { name: "Go to payment" }).click();
  await page.waitForURL(shop.processor + "/**");
  assert.equal((await fetch(`${shop.bank}/?session=${paid.split("/").at(-1)}`, { method: "POST" })).status, 204);
  await show(page, "/dashboard/billing");
  assert.equal(await balance.innerText(), "$25.00");
  await show(page, "/dashboard");
  await page.getByText("Balance: $25.00.").waitFor();
  await check();
});

test("what is shown can be saved: every list as CSV", async () => {
  const { page, check } = await open();
  await signIn(page, "/dashboard", shop.manager);
  assert.equal((await call(shop.manager, "PUT /gw/limits", { scope: "client", unit: "requests", window: "minute", limit: 1e6 })).status, 204);
  const count = async (path, of) => of((await call(shop.manager, "GET " + path)).json);
  for (const [path, name, want] of [
    ["/keys?show=all", "keys", await count("/gw/keys", (k) => k.length)],
    ["/customers", "customers-30d", await count("/gw/subaccounts", (s) => s.length)],
    ["/budgets", "budgets", await count("/gw/budgets", (b) => b.length)],
    ["/limits", "limits", await count("/gw/limits", (l) => l.length)],
    ["/models?allowed=0", "models", await count("/gw/models", (m) => m.models.length)],
  ]) {
    await show(page, "/dashboard" + path);
    const file = await downloaded(page, () => page.getByRole("button", { name: "CSV" }).first().click());
    assert.equal(file.name, name + ".csv");
    const rows = lines(file.text);
    assert.equal(rows.length, want, path);
    assert.ok(rows.every((r) => r.length === rows[0].length), path);
  }
  await check();
});

test("errors: what was said and the request, and trying again", async () => {
  const { page, check } = await open({ fine: [/503 \(/, /ERR_FAILED/] });
  await signIn(page, "/dashboard", shop.manager);
  await settled(page);
  const id = "01a1feca-0000-7000-8000-000000000000";
  let broken = true;
  await page.route("**/gw/budgets", (route) => (broken ? route.fulfill({ status: 503, headers: { "X-Gateway-Request-Id": id, "Content-Type": "application/json" }, body: '{"error":{"type":"unavailable","message":"the database does not answer"}}' }) : route.continue()));
  await page.getByRole("link", { name: "Budgets" }).click();
  assert.match(await page.getByRole("alert").innerText(), new RegExp("the database does not answer[\\s\\S]*Request " + id, "i"));
  await accessible(page, "an error");
  await page.screenshot({ path: `${shots}/flow-error.png` });
  broken = false;
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByText("Everything that is spent counts here.").waitFor();
  // A page that is opened while the database is away says so, and mends itself.
  const away = (route) => route.fulfill({ status: 503, headers: { "X-Gateway-Request-Id": id, "Content-Type": "application/json" }, body: '{"error":{"type":"unavailable","message":"the database does not answer"}}' });
  await page.route("**/dashboard/session", away);
  await page.reload();
  assert.match(await page.getByRole("alert").innerText(), new RegExp("the database does not answer[\\s\\S]*Request " + id, "i"));
  await accessible(page, "the database is away");
  await page.screenshot({ path: `${shots}/flow-away.png` });
  await page.unroute("**/dashboard/session", away);
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByText("Everything that is spent counts here.").waitFor();
  await page.route("**/gw/keys", (route) => route.abort());
  await page.getByRole("link", { name: "Keys", exact: true }).click();
  await page.getByText("The gateway cannot be reached.").first().waitFor();
  await check();
});

test("a key with one scope sees what that scope shows", async () => {
  const { page, check } = await open();
  await signIn(page, "/dashboard", shop.reader);
  const places = await page.getByRole("navigation", { name: "Dashboard" }).getByRole("link").allInnerTexts();
  assert.deepEqual(places, ["Overview", "Usage", "Models", "Jobs", "Limits", "Sessions", "Evidence"]);
  for (const path of ["/keys", "/customers", "/budgets", "/branding"]) {
    await show(page, "/dashboard" + path);
    await page.getByText("It lacks the scope keys:manage").waitFor();
  }
  await show(page, "/dashboard/usage");
  assert.ok((await page.locator("tbody tr").count()) > 10);
  await check();
});

test("signing out that does not work is not taken for it", async () => {
  const { page, check } = await open({ fine: [/ERR_FAILED/] });
  await signIn(page, "/dashboard", shop.manager);
  await settled(page);
  const lost = (route) => (route.request().method() === "DELETE" ? route.abort() : route.continue());
  await page.route("**/dashboard/session", lost);
  await page.getByRole("button", { name: "Sign out" }).click();
  const dialog = page.getByRole("dialog", { name: "You are still signed in" });
  await dialog.getByText("The gateway cannot be reached.").waitFor();
  await accessible(page, "still signed in");
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  await dialog.waitFor(); // what is on its way when the route goes is not lost
  await page.unroute("**/dashboard/session", lost);
  await dialog.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("button", { name: "Sign in" }).waitFor();
  assert.deepEqual(await page.context().cookies(), []);
  await check();
});

test("overview: the percentile is of all calls of the period", async () => {
  const { page, check } = await open();
  await signIn(page, "/dashboard", shop.manager);
  await show(page, "/dashboard?period=30d");
  const spans = (await call(shop.manager, "GET /gw/series?since=29d&interval=day")).json;
  const counts = new Map();
  for (const s of spans) for (const [ms, n] of Object.entries(s.latency_ms.counts)) counts.set(Number(ms), (counts.get(Number(ms)) ?? 0) + n);
  const calls = spans.reduce((sum, s) => sum + s.requests, 0);
  assert.equal([...counts.values()].reduce((a, b) => a + b), calls);
  const within = (ms) => [...counts].reduce((sum, [at, n]) => sum + (at <= ms ? n : 0), 0) / calls;
  const p95 = Math.min(...[...counts.keys()].filter((ms) => within(ms) >= 0.95));
  const shown = p95 < 1000 ? `${p95} ms` : `${(p95 / 1000).toFixed(p95 < 10_000 ? 2 : 1)} s`;
  assert.equal(await page.getByRole("button", { name: /^Latency, p95/ }).locator(".figure").innerText(), shown);
  await check();
});

test("a session ends with its key", async () => {
  const { page, check } = await open();
  const issued = (await call(shop.manager, "POST /gw/keys", { scopes: ["stats:read"] })).json;
  await signIn(page, "/dashboard", issued.key);
  await settled(page);
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

test("long names stay within the page, wide and narrow", async () => {
  const long = "Donaudampfschifffahrtsgesellschaft".repeat(5).slice(0, 160);
  const brand = { portal_slug: shop.portal, product_name: "W".repeat(100), accent_color: "#0f766e", allow_self_issue: true };
  const made = (await call(shop.manager, "POST /gw/subaccounts", { name: long, slug: "l".repeat(64) })).json;
  const key = (await call(shop.manager, "POST /gw/keys", { scopes: ["inference:use", "stats:read", "keys:manage"], sub_account_id: made.id })).json.key;
  await call(shop.manager, "PUT /gw/budgets", { scope: "sub_account", id: made.id, period: "month", limit_usd: 1e9 });
  await fetch(shop.url + "/v1/chat/completions", {
    method: "POST", body: JSON.stringify({ model: "openai/gpt-5-mini", messages: [{ role: "user", content: "hi" }] }),
    headers: { Authorization: "Bearer " + key, "Content-Type": "application/json", "X-Gateway-Attribution": `team=${"t".repeat(100)}` },
  });
  assert.equal((await call(shop.manager, "PUT /gw/branding", brand)).status, 200);
  await new Promise((then) => setTimeout(then, 2100)); // how long a portal's brand is kept
  for (const width of [360, 1440]) {
    const { page, check } = await open({ width });
    const fits = async (what) => {
      const wide = await page.evaluate((width) => Math.max(document.documentElement.scrollWidth - width, ...[...document.querySelectorAll("dialog[open] .sheet")].map((e) => e.scrollWidth - e.clientWidth)), width);
      await page.screenshot({ path: `${shots}/long-${what}-${width}.png` });
      assert.ok(wide <= 0, `${what} at ${width} is ${wide} px too wide`);
    };
    await signIn(page, "/dashboard", shop.manager);
    const one = "/customers/" + made.id;
    for (const path of width < 800 ? ["?group=sub_account_id", "?group=team", "/usage", "/keys", "/customers", one, "/budgets", "/billing", "/branding"] : ["/usage", one, "/budgets"]) {
      await show(page, "/dashboard" + path);
      await fits("dashboard" + path.replace(made.id, "one").replaceAll(/\W+/g, "-"));
    }
    await show(page, "/dashboard" + one);
    for (const name of width < 800 ? ["Issue key", "Suspend", "Edit"] : ["Suspend"]) {
      await page.getByRole("button", { name, exact: true }).click();
      await page.getByRole("dialog").waitFor();
      await fits("customer-" + name.replace(" ", "-"));
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "detached" });
    }
    await show(page, "/dashboard/usage");
    await page.locator("tbody tr").first().click();
    await page.getByRole("dialog").getByText(long).waitFor();
    await fits("usage-detail");
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: width < 800 ? "Menu" : "Sign out" }).click();
    if (width < 800) await page.getByRole("button", { name: "Sign out" }).click();
    await page.goto(shop.url + "/p/" + shop.portal);
    await page.getByLabel("Key").waitFor();
    await fits("portal-sign-in");
    await signIn(page, "/p/" + shop.portal, key);
    for (const path of width < 800 ? ["", "/budgets", "/start"] : [""]) {
      await show(page, "/p/" + shop.portal + path);
      await fits("portal" + path.replaceAll(/\W+/g, "-"));
    }
    await check();
  }
  await call(shop.manager, "PUT /gw/branding", { ...brand, product_name: "Acme Intelligence" });
});
