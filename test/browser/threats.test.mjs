// The threats of pages: logos, other sites, and markup in what people type.
import { after, test } from "node:test";
import assert from "node:assert/strict";
import http from "node:http";
import { browser, call, open, shop, show, signIn } from "./setup.mjs";

after(() => browser.close());

const root = "/p/" + shop.portal;
const brand = { portal_slug: shop.portal, product_name: "Acme Intelligence", logo_url: "", accent_color: "#0f766e", allow_self_issue: true };

function listen(handler) {
  return new Promise((resolve) => {
    const server = http.createServer(handler).listen(0, "127.0.0.1", () => resolve({ port: server.address().port, close: () => server.close() }));
  });
}

test("S12: a logo is an address for an <img> and never fetched by the gateway", async () => {
  for (const bad of ["javascript:alert(1)", "http://x.example/a.png", 'https://x.example/"onerror=alert(1)', "https:evil", "https://", "https://u:p@x.example/a.png", "data:image/svg+xml,<svg onload=alert(1)>", "https://x.example/\u0000", "//x.example", "https://x.example/" + "a".repeat(2048)]) {
    const answer = await call(shop.manager, "PUT /gw/branding", { ...brand, logo_url: bad });
    assert.equal(answer.status, 400, bad);
  }
  let asked = 0;
  const outside = await listen((_, w) => {
    asked++;
    w.end();
  });
  const logo = `https://127.0.0.1:${outside.port}/logo.svg?a='b`.replace("'", "%27");
  assert.equal((await call(shop.manager, "PUT /gw/branding", { ...brand, logo_url: logo })).status, 200);
  await new Promise((then) => setTimeout(then, 2100)); // how long a portal's brand is kept
  assert.equal(asked, 0);
  const context = await browser.newContext();
  const page = await context.newPage();
  const asks = [];
  await page.route(/^https:/, (route) => {
    asks.push(route.request());
    return route.fulfill({ contentType: "image/svg+xml", body: '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9" onload="parent.owned=1"><script>window.owned=1</script><rect width="9" height="9"/></svg>' });
  });
  await page.goto(shop.url + root);
  await page.waitForFunction(() => document.querySelector("img.logo")?.naturalWidth > 0);
  assert.ok(asks.length > 0 && asks.every((r) => r.resourceType() === "image" && !r.headers().referer));
  assert.equal(await page.evaluate(() => window.owned), undefined);
  assert.equal(await page.locator("img.logo").getAttribute("referrerpolicy"), "no-referrer");
  assert.equal(await page.locator(`[src*="logo.svg"], [href*="logo.svg"]`).count(), 1);
  outside.close();
  await context.close();
  await call(shop.manager, "PUT /gw/branding", brand);
});

test("S36: another site can neither act nor frame, and no inline script runs", async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  await signIn(page, "/dashboard", shop.manager);
  const before = (await call(shop.manager, "GET /gw/subaccounts")).json.length;
  const evil = await listen((r, w) => {
    w.setHeader("Content-Type", "text/html");
    w.end(`<!doctype html><title>evil</title><form method="post" enctype="text/plain" action="${shop.url}/dashboard/gw/subaccounts"><input name='{"name":"evil","slug":"evil","x":"' value='"}'></form><iframe id="frame" src="${shop.url}/dashboard"></iframe>`);
  });
  // 127.0.0.1 on another port is the same site and another origin; localhost
  // is another site.
  for (const host of ["127.0.0.1", "localhost"]) {
    const other = await context.newPage();
    await other.goto(`http://${host}:${evil.port}/`);
    const seen = await other.evaluate(async (url) => {
      const out = [];
      for (const [method, path, body] of [["POST", "/dashboard/gw/subaccounts", '{"name":"evil","slug":"evil"}'], ["POST", "/dashboard/session", '{"key":"x"}'], ["DELETE", "/dashboard/session", undefined], ["PUT", "/dashboard/gw/branding", "{}"]]) {
        out.push(await fetch(url + path, { method, body, credentials: "include", headers: { "Content-Type": "text/plain" } }).then((r) => r.status, () => "blocked"));
      }
      out.push(await fetch(url + "/dashboard/gw/keys", { credentials: "include" }).then((r) => r.text(), () => "blocked"));
      return out;
    }, shop.url);
    assert.deepEqual(seen, ["blocked", "blocked", "blocked", "blocked", "blocked"], host);
    const frame = other.frames().find((f) => f !== other.mainFrame());
    assert.ok(!frame || !(await frame.locator("#app").count().catch(() => 0)), "framed from " + host);
    const [answer] = await Promise.all([other.waitForNavigation(), other.evaluate(() => document.forms[0].submit())]);
    assert.equal(answer.status(), 403, host);
    await other.close();
  }
  assert.equal((await call(shop.manager, "GET /gw/subaccounts")).json.length, before);
  evil.close();
  assert.equal(await page.evaluate(async (url) => (await fetch(url + "/dashboard/gw/me")).status, shop.url), 200);
  // Inline script, inline handlers and HTML from text.
  const ran = await page.evaluate(async () => {
    window.ran = [];
    const tries = [
      () => { const s = document.createElement("script"); s.append("window.ran.push('inline')"); document.body.append(s); },
      () => { const b = document.createElement("button"); b.setAttribute("onclick", "window.ran.push('handler')"); document.body.append(b); b.click(); b.remove(); },
      () => { const d = document.createElement("div"); d.innerHTML = "<img src=x onerror=\"window.ran.push('html')\">"; document.body.append(d); },
    ];
    for (const attempt of tries) { try { attempt(); } catch { /* refused */ } }
    await new Promise((then) => setTimeout(then, 100));
    return window.ran;
  });
  assert.deepEqual(ran, []);
  const policy = (await page.request.get(shop.url + "/dashboard")).headers()["content-security-policy"];
  for (const part of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"]) assert.ok(policy.includes(part), part);
  assert.ok(!/unsafe|\*/.test(policy));
  await context.close();
});

// payloads are 300 texts that a page might take for markup, script or style.
function payloads() {
  const cores = [
    "<script>hit()</script>", "<img src=x onerror=hit()>", "<svg onload=hit()>", "<svg/onload=hit()>", '"><script>hit()</script>', "'><img src=x onerror=hit()>", "</title><script>hit()</script>",
    "</script><script>hit()</script>", "<iframe srcdoc='<script>parent.hit()</script>'>", "<a href=javascript:hit()>x</a>", "javascript:hit()", "<style>*{display:none}</style>", "<link rel=stylesheet href=//x>",
    "<base href=//x>", "<meta http-equiv=refresh content=0>", "{{constructor.constructor('hit()')()}}", "${hit()}", "`${hit()}`", "<!--<script>hit()</script>-->", "<!--head-->", "<math><mtext></form><form><mglyph><style></math><img src onerror=hit()>",
    "<details open ontoggle=hit()>", "<video><source onerror=hit()>", "<body onload=hit()>", "<object data=javascript:hit()>", "<x contenteditable onblur=hit()>", "&lt;script&gt;hit()&lt;/script&gt;", "&#60;script&#62;hit()", "%3Cscript%3Ehit()", "\\u003cscript>hit()",
  ];
  const wraps = [(c) => c, (c) => `a ${c} b`, (c) => `"${c}`, (c) => `'${c}`, (c) => `</p>${c}`, (c) => `--> ${c}`, (c) => `]]>${c}`, (c) => c.toUpperCase().replaceAll("HIT()", "hit()"), (c) => `=${c}`, (c) => `;}${c}`];
  return cores.flatMap((c) => wraps.map((w) => w(c))).slice(0, 300);
}

test("S37: what people type is text, wherever it is shown", async () => {
  const list = payloads();
  assert.equal(list.length, 300);
  await Promise.all(
    Array.from({ length: 6 }, async (_, lane) => {
      for (let i = lane; i < list.length; i += 6) {
        const answer = await call(shop.manager, "POST /gw/subaccounts", { name: list[i], slug: "x-" + i });
        assert.equal(answer.status, 200, list[i]);
      }
    }),
  );
  const { page, wrong } = await open();
  await page.addInitScript(() => {
    window.hits = 0;
    window.hit = () => window.hits++;
  });
  await signIn(page, "/dashboard", shop.manager);
  const clean = await page.evaluate(() => [...document.querySelectorAll("script,iframe,object,base,style,link,meta,svg[onload],math,video,details")].length);
  const seen = new Set();
  await show(page, "/dashboard/customers");
  for (;;) {
    for (const text of await page.locator("tbody .two a").allTextContents()) seen.add(text);
    const [hits, elements] = await page.evaluate(() => [window.hits, [...document.querySelectorAll("script,iframe,object,base,style,link,meta,svg[onload],math,video,details")].length]);
    assert.equal(hits, 0);
    assert.equal(elements, clean);
    const next = page.getByRole("button", { name: "Next page" });
    if (await next.isDisabled()) break;
    await next.click();
  }
  assert.deepEqual(list.filter((p) => !seen.has(p.trim())), []);
  // In choices, in details, in errors and as attribution.
  await show(page, "/dashboard/keys");
  await page.getByRole("button", { name: "Issue key" }).click();
  await page.waitForFunction((n) => document.querySelectorAll("dialog option").length > n, 300);
  await call(shop.manager, "GET /gw/usage?id=" + list[0]);
  await fetch(shop.url + "/v1/chat/completions", {
    method: "POST", body: JSON.stringify({ model: "openai/gpt-5-mini", messages: [{ role: "user", content: "hi" }] }),
    headers: { Authorization: "Bearer " + shop.manager, "Content-Type": "application/json", "X-Gateway-Attribution": "team=" + encodeURIComponent(list[1]) },
  });
  await show(page, "/dashboard/usage");
  await page.locator("tbody tr").first().click();
  await page.getByRole("dialog").getByText(list[1], { exact: true }).waitFor();
  await show(page, "/dashboard/usage?id=" + encodeURIComponent(list[4]));
  await page.getByRole("alert").waitFor();
  await show(page, "/dashboard/models?model=" + encodeURIComponent("openai/gpt-5-mini"));
  await page.getByLabel("Prompt").fill(list.slice(0, 9).join(" "));
  await page.getByRole("button", { name: "Run" }).click();
  await page.getByText(/\d+ tokens · \$/).waitFor();
  assert.equal(await page.evaluate(() => window.hits), 0);
  assert.deepEqual(wrong.filter((w) => !w.includes("400")), []);
  await page.context().close();

  // As a product's name, which stands in the title, a meta tag and the page.
  for (const [i, name] of [list[0], list[40], list[60], list[70], list[120], list[150], list[190], list[200]].entries()) {
    assert.equal((await call(shop.manager, "PUT /gw/branding", { ...brand, portal_slug: "xss-" + i, product_name: name })).status, 200);
    const visit = await open();
    await visit.page.addInitScript(() => {
      window.hits = 0;
      window.hit = () => window.hits++;
    });
    await visit.page.goto(shop.url + "/p/xss-" + i);
    await visit.page.getByRole("heading", { level: 1 }).waitFor();
    assert.equal((await visit.page.locator("h1").textContent()).trim(), name.trim());
    assert.equal(await visit.page.evaluate(() => window.hits), 0);
    await visit.check();
  }
  // A colour is six digits and nothing else.
  for (const color of ["red", "#fff", "#12345g", "#123456;}", "url(//x)", "#123456/*", "var(--x)"]) {
    assert.equal((await call(shop.manager, "PUT /gw/branding", { ...brand, accent_color: color })).status, 400, color);
  }
  await call(shop.manager, "PUT /gw/branding", brand);
});

test("S38: a portal's session issues on its terms, whatever is sent", async () => {
  await new Promise((then) => setTimeout(then, 2050));
  const { page, context } = await open({ fine: [/403 \(Forbidden\)/] });
  await signIn(page, root, shop.sibling);
  const post = (body) => page.evaluate(async ([url, text]) => (await fetch(url, { method: "POST", headers: { "Content-Type": "application/json" }, body: text })).status, [root + "/gw/keys", JSON.stringify(body)]);
  for (const bad of [{ scopes: ["keys:manage"], expires_in_seconds: 60 }, { scopes: ["inference:use", "stats:read"], expires_in_seconds: 60 }, { scopes: ["inference:use"] }, { scopes: ["inference:use"], expires_in_seconds: 7_776_001 }, { scopes: ["inference:use"], expires_in_seconds: 60, sub_account_id: shop.first }]) {
    assert.equal(await post(bad), 403, JSON.stringify(bad));
  }
  const live = (await call(shop.sibling, "GET /gw/keys")).json.filter((k) => k.status === "active").length;
  let issued = 0;
  for (let i = 0; i < 12; i++) if ((await post({ scopes: ["inference:use"], expires_in_seconds: 60 })) === 200) issued++;
  assert.equal(issued, Math.max(0, 10 - live));
  assert.equal(await page.evaluate(async (url) => (await fetch(url)).status, root + "/gw/subaccounts"), 403);
  assert.equal(await page.evaluate(async () => (await fetch("/dashboard/gw/keys")).status), 401);
  await context.close();
});
