// Every page of the dashboard and the portal, wide and narrow, light and dark:
// accessible, within its width, without shifts, and as a picture to look at.
import { after, test } from "node:test";
import assert from "node:assert/strict";
import { accessible, browser, delayed, open, shop, shots, show, signIn } from "./setup.mjs";

after(() => browser.close());

const dashboard = {
  overview: "", "overview-latency": "?metric=latency&period=30d", usage: "/usage", models: "/models", jobs: "/jobs", keys: "/keys", budgets: "/budgets", limits: "/limits",
  customers: "/customers", customer: "/customers/" + shop.first, branding: "/branding", billing: "/billing", evidence: "/evidence", people: "/people", sessions: "/sessions",
};
const portal = { overview: "", usage: "/usage", keys: "/keys", budgets: "/budgets", limits: "/limits", models: "/models", jobs: "/jobs", start: "/start" };
// An organization and a customer that have nothing yet are told what to do.
const empty = {
  overview: ["", /Make the first call/], usage: ["/usage", /Try a model/], jobs: ["/jobs", /Models that make videos/], budgets: ["/budgets", /Set one so that/], limits: ["/limits", /Set one so that nobody[\s\S]*Nothing limits/],
  customers: ["/customers", /Add one to resell/], branding: ["/branding", /Your customers open this path/], billing: ["/billing", /Add customers first[\s\S]*They are queued when/], people: ["/people", /names its OpenID provider/],
};
const fresh = { overview: ["", /Make the first call[\s\S]*Quick start/], usage: ["/usage", /Quick start/], jobs: ["/jobs", /Models that make videos/], budgets: ["/budgets", /You can set one/], limits: ["/limits", /You can set one for each/] };
// Without FULL each place is seen in one look, and each theme and width somewhere.
const looks = (...usual) => (process.env.FULL ? [1440, 1280, 390, 360].flatMap((width) => [["light", width], ["dark", width]]) : usual);
const places = [
  ["dashboard", "/dashboard", shop.manager, dashboard, looks(["light", 1280])],
  ["portal", "/p/" + shop.portal, shop.customer, portal, looks(["dark", 360])],
  ["dashboard-empty", "/dashboard", shop.neighbor, empty, looks(["dark", 1280])],
  ["portal-empty", "/p/" + shop.portal, shop.fresh, fresh, looks(["light", 360])],
];
// Branding that was never set is a 404.
const missing = [/404 \(Not Found\)/];

for (const [place, root, key, pages, looks] of places) {
  for (const [theme, width] of looks) {
    test(`${place}, ${theme}, ${width} wide: every page`, async () => {
      const { page, check } = await open({ theme, width, fine: missing });
      await page.goto(shop.url + root);
      await page.getByLabel("Key").waitFor();
      await accessible(page, "sign in");
      await page.screenshot({ path: `${shots}/${place}-sign-in-${theme}-${width}.png` });
      await signIn(page, root, key);
      for (const [name, to] of Object.entries(pages)) {
        const [path, said] = [to].flat();
        await show(page, root + path);
        if (said) assert.match(await page.locator("main").innerText(), said);
        await accessible(page, name);
        const [wide, shifted] = await page.evaluate((width) => [document.documentElement.scrollWidth - width, window.shifted], width);
        assert.ok(wide <= 0, `${name} is ${wide} px too wide`);
        assert.ok(shifted < 0.02, `${name} shifted by ${shifted}`);
        await page.screenshot({ path: `${shots}/${place}-${name}-${theme}-${width}.png` });
      }
      await check();
    });
  }
}

// In one order and in the other: what comes later must find its place ready.
const orders = [
  { subaccounts: 240, keys: 120, stats: 200, series: 40, prices: 160, budgets: 60, limits: 220, quota: 90, models: 20, branding: 80, processor: 30 },
  { subaccounts: 20, keys: 160, stats: 40, series: 200, prices: 20, budgets: 240, limits: 30, quota: 260, models: 160, branding: 120, processor: 240 },
];

for (const [width, order] of [[1280, 0], [360, 1], ...(process.env.FULL ? [[1280, 1], [360, 0]] : [])]) {
  test(`answers that come one by one move nothing, ${width} wide, order ${order}`, async () => {
    const { page, check } = await open({ width, fine: missing });
    await signIn(page, "/dashboard", shop.manager);
    const shown = await delayed(page, orders[order]);
    const paths = { ...dashboard, "overview-key": "?group=key_id", "overview-customer": "?group=sub_account_id" };
    for (const [name, path] of Object.entries(paths)) {
      await show(page, "/dashboard" + path);
      await shown();
      const shifted = await page.evaluate(() => window.shifted);
      assert.ok(shifted < 0.01, `${name} shifted by ${shifted}`);
    }
    await check();
  });
}
