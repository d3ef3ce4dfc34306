// How long each page takes from the click on a link to it until its figures
// are there and it reacts, in milliseconds; the worst of a few visits counts.
import { browser, open, shop, signIn } from "./setup.mjs";

const limit = Number(process.env.LIMIT);
const pages = {
  "/dashboard": ["", "?period=90d", "?group=sub_account_id&period=90d", "?group=key_id&period=90d&metric=requests", "?group=team&period=24h&metric=tokens", "/usage", "/usage?since=all&provider=gemini", "/models", "/jobs", "/keys", "/budgets", "/limits", "/customers", "/customers/" + shop.first, "/branding", "/billing", "/evidence"],
  ["/p/" + shop.portal]: ["", "/usage", "/keys", "/budgets", "/limits", "/models", "/jobs", "/start"],
};
let slow = 0;
for (const [root, list] of Object.entries(pages)) {
  const { page, context } = await open();
  await signIn(page, root, root === "/dashboard" ? shop.manager : shop.customer);
  for (const path of list) {
    const times = [];
    for (let visit = 0; visit < 3; visit++) {
      await page.goto(shop.url + root + path, { waitUntil: "commit" });
      times.push(
        await page.waitForFunction(() => document.querySelector("h1") && !document.querySelector(".bones") && !document.querySelector("[aria-busy=true]") && performance.now()).then((h) => h.jsonValue()),
      );
      // It reacts: a key moves the focus within a frame or two.
      const began = await page.evaluate(() => performance.now());
      await page.keyboard.press("Tab");
      await page.waitForFunction(() => document.activeElement !== document.body);
      times[times.length - 1] += (await page.evaluate(() => performance.now())) - began;
    }
    const [best, worst] = [Math.min(...times), Math.max(...times)].map(Math.round);
    console.log(`${worst > limit ? "SLOW " : ""}${(root.startsWith("/p/") ? "portal" : "dashboard") + path.replace(shop.first, "{id}")}\t${best}–${worst} ms`);
    if (worst > limit) slow++;
  }
  await context.close();
}
await browser.close();
process.exit(slow ? 1 : 0);
