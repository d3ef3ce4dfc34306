// People sign in with accounts of a provider of another library, at another site,
// on two instances that answer in turn.
import { after, test } from "node:test";
import assert from "node:assert/strict";
import { accessible, browser, open, settled, shop, shots, show, until } from "./setup.mjs";

after(() => browser.close());

const idp = process.env.IDP;
// The provider's pages ask for fonts that are not there.
const options = { also: [idp, "https://fonts.googleapis.com"], fine: [/ERR_NAME_NOT_RESOLVED/, /403 \(Forbidden\)/, /400 \(Bad Request\)/, /404 \(Not Found\)/] };

// enter signs somebody in at the provider and waits to be back.
async function enter(page, login, path = "/dashboard") {
  await page.goto(shop.url + path);
  await page.getByRole("button", { name: "Sign in with Acme SSO" }).click();
  await page.getByPlaceholder("Enter any login").fill(login);
  await page.getByPlaceholder("and password").fill("x");
  await page.getByRole("button", { name: "Sign-in" }).click();
}

// entered is a browser of somebody who is signed in.
async function entered(login, more = {}) {
  const one = await open({ ...options, ...more });
  await enter(one.page, login);
  await one.page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  return one;
}

// status asks as the page does.
const status = (page, path = "/dashboard/session") => page.evaluate(async (to) => (await fetch(to)).status, path);

// gone waits until a page's session has ended; it must not take two seconds.
async function gone(page, since) {
  await until("the session ends", async () => (await status(page)) === 401);
  const took = Date.now() - since;
  assert.ok(took < 2000, `it took ${took} ms`);
  return took;
}

const control = (what) => fetch(process.env.CONTROL + what, { method: "POST" }).then((r) => assert.equal(r.status, 200, what));

test("sign-in keeps where one was going, on instances that answer in turn", async () => {
  const { page, context, check } = await open(options);
  await page.goto(shop.url + "/dashboard/usage?since=24h");
  await page.getByRole("button", { name: "Sign in with Acme SSO" }).waitFor();
  await accessible(page, "sign in");
  await page.screenshot({ path: `${shots}/signin-offer.png` });
  await enter(page, "ops.anna", "/dashboard/usage?since=24h");
  await page.getByRole("heading", { level: 1, name: "Usage" }).waitFor();
  assert.equal(page.url(), shop.url + "/dashboard/usage?since=24h");
  const cookies = (await context.cookies()).filter((c) => c.domain === "gw.test");
  assert.deepEqual(cookies.map((c) => [c.name, c.httpOnly, c.secure, c.sameSite]), [["__Host-dashboard", true, true, "Strict"]]);
  for (let i = 0; i < 6; i++) assert.equal(await status(page, "/dashboard/gw/me"), 200);
  // Coming from another site's link the session is there as well.
  await page.goto(idp + "/none");
  await page.evaluate((to) => (location.href = to), shop.url + "/dashboard/keys");
  await page.getByRole("heading", { level: 1, name: "Keys" }).waitFor();
  // The other organization of the same person.
  await Promise.all([page.waitForEvent("load"), page.getByLabel("Organization").selectOption({ label: "Other" })]);
  await page.getByText("ops.anna · viewer").waitFor();
  await check();
});

test("who is let in nowhere is told so, and a callback works once", async () => {
  const { page, check } = await open(options);
  let callback;
  page.on("request", (r) => r.url().includes("/session/callback") && (callback = r.url()));
  await enter(page, "guests.gwen");
  await page.getByText("your account at Acme SSO has no access here").waitFor();
  await page.getByText(/Request [0-9a-f-]{36}/).waitFor();
  const again = await page.goto(callback);
  assert.equal(again.status(), 400);
  await page.getByText("this sign-in has expired or was started in another browser; start again").waitFor();
  assert.equal((await page.context().cookies()).filter((c) => c.domain === "gw.test").length, 0);
  await check();
});

test("a session that has expired asks for the sign-in, and goes on where it was", async () => {
  const { page, check } = await entered("ops.edna");
  await show(page, "/dashboard/budgets");
  await control("/expire?email=ops.edna@example.com");
  await until("the session ends", async () => (await status(page)) === 401);
  await page.getByRole("navigation").getByRole("link", { name: "Keys" }).click();
  await page.getByText("The session has ended.").waitFor();
  await page.getByRole("button", { name: "Sign in with Acme SSO" }).click(); // the provider still knows who it is
  await page.getByRole("heading", { level: 1, name: "Keys" }).waitFor();
  await check();
});

test("signing out ends the provider's session too", async () => {
  const { page, check } = await entered("ops.otto");
  await page.getByRole("button", { name: "Sign out", exact: true }).click();
  await page.getByRole("button", { name: "Yes, sign me out" }).click();
  await page.getByRole("button", { name: "Sign in with Acme SSO" }).waitFor();
  assert.equal(await status(page), 401);
  await page.getByRole("button", { name: "Sign in with Acme SSO" }).click();
  await page.getByPlaceholder("Enter any login").waitFor(); // asked anew
  await check();
});

test("signing out at the provider ends what goes on in another window", async () => {
  const { page, context, check } = await entered("ops.olaf");
  const other = await context.newPage();
  await other.goto(idp + "/session/end");
  const since = Date.now();
  await other.getByRole("button", { name: "Yes, sign me out" }).click();
  console.log(`the other window is out after ${await gone(page, since)} ms`);
  await page.getByRole("navigation").getByRole("link", { name: "Keys" }).click();
  await page.getByText("The session has ended.").waitFor();
  await check();
});

test("operators sign in to the console, and are out with the provider's session", async () => {
  const operator = process.env.OPERATOR;
  const { page, context, check } = await open({ ...options, also: [...options.also, operator] });
  const login = async (name) => {
    await page.getByRole("button", { name: "Sign in with Acme SSO" }).click();
    await page.getByPlaceholder("Enter any login").fill(name);
    await page.getByPlaceholder("and password").fill("x");
    await page.getByRole("button", { name: "Sign-in" }).click();
  };
  await page.goto(operator + "/operator/audit");
  await page.getByRole("button", { name: "Sign in with Acme SSO" }).waitFor();
  await accessible(page, "operator sign in");
  await page.screenshot({ path: `${shots}/signin-operator.png` });
  await login("guests.gwen");
  await page.getByText("your account at Acme SSO has no access here").waitFor();
  await page.goto(idp + "/session/end");
  await page.getByRole("button", { name: "Yes, sign me out" }).click();
  await page.goto(operator + "/operator/audit");
  await login("ops.oona");
  await page.getByRole("heading", { level: 1, name: "Audit" }).waitFor();
  assert.equal(page.url(), operator + "/operator/audit");
  await page.getByText("ops.oona@example.com").first().waitFor();
  const other = await context.newPage();
  await other.goto(idp + "/session/end");
  const since = Date.now();
  await other.getByRole("button", { name: "Yes, sign me out" }).click();
  await until("the session ends", async () => (await status(page, "/operator/session")) === 401);
  assert.ok(Date.now() - since < 2000, `it took ${Date.now() - since} ms`);
  await check();
});

test("people and sessions: seen, filtered, and signed out by somebody else", async () => {
  const admin = await entered("ops.ada"), vera = await entered("staff.vera"), phone = await entered("staff.vera", { width: 390, height: 800 });
  const { page } = admin;
  await show(page, "/dashboard/people");
  await accessible(page, "people");
  await page.screenshot({ path: `${shots}/signin-people.png` });
  const row = page.getByRole("row").filter({ hasText: "staff.vera" });
  assert.match(await row.innerText(), /viewer[\s\S]*Groups of the provider[\s\S]*active/);
  await row.getByRole("link", { name: "Sessions of staff.vera" }).click();
  await page.getByRole("heading", { level: 1, name: "Sessions" }).waitFor();
  await settled(page);
  assert.equal(await page.locator("tbody tr").count(), 2);
  await accessible(page, "sessions");
  await page.screenshot({ path: `${shots}/signin-sessions.png` });

  // One browser of hers, and then the other, each seen to end at once.
  await page.getByRole("button", { name: /End the session of staff.vera/ }).first().click();
  let since = Date.now();
  await page.getByRole("dialog").getByRole("button", { name: "End session" }).click();
  await until("one session is left", async () => (await page.locator("tbody tr").count()) === 1);
  const ended = await until("one window is out", async () => ((await status(vera.page)) === 401 && vera) || ((await status(phone.page)) === 401 && phone));
  assert.ok(Date.now() - since < 2000, `it took ${Date.now() - since} ms`);
  const left = ended === vera ? phone : vera;
  await show(page, "/dashboard/people");
  await page.getByRole("button", { name: "Actions for staff.vera" }).click();
  await page.getByRole("menuitem", { name: "Sign out everywhere…" }).click();
  since = Date.now();
  await page.getByRole("dialog").getByRole("button", { name: "Sign out" }).click();
  await gone(left.page, since);

  // Whoever may not manage sees what is their own, on a phone too.
  await phone.page.goto(shop.url + "/dashboard/sessions");
  await phone.page.getByRole("button", { name: "Sign in with Acme SSO" }).click(); // the provider still knows who it is
  await phone.page.getByRole("heading", { level: 1, name: "Sessions" }).waitFor();
  await settled(phone.page);
  assert.equal(await phone.page.locator("tbody tr").count(), 1);
  await accessible(phone.page, "sessions, narrow");
  assert.ok(await phone.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "wider than the screen");
  await phone.page.screenshot({ path: `${shots}/signin-sessions-390.png` });
  await show(phone.page, "/dashboard/people");
  await phone.page.getByText("does not show people").waitFor();

  // Loading, failed, and again.
  await page.route("**/gw/sessions*", (r) => r.fulfill({ status: 503, json: { error: { type: "unavailable", message: "the database does not answer; retry shortly" } } }));
  await page.goto(shop.url + "/dashboard/sessions");
  await page.getByText("the database does not answer").waitFor();
  await page.unroute("**/gw/sessions*");
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByText("this browser").waitFor();

  // Everywhere, by oneself.
  await page.getByRole("button", { name: "Sign out everywhere" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Sign out everywhere" }).click();
  await page.getByRole("button", { name: "Yes, sign me out" }).click();
  await page.getByRole("button", { name: "Sign in with Acme SSO" }).waitFor();
  for (const one of [admin, vera, phone]) {
    one.wrong.splice(0, one.wrong.length, ...one.wrong.filter((w) => !/503 \(Service Unavailable\)/.test(w)));
    await one.check();
  }
});
