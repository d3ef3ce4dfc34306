// Run by the tests of cmd/modelgate, which start the gateway.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Modelgate, ModelgateError, userAgent } from "../dist/index.js";

const baseURL = process.env.GATEWAY_URL;
const key = process.env.GATEWAY_KEY;
const skip = !baseURL || !key ? "needs GATEWAY_URL and GATEWAY_KEY of a running gateway" : false;
const gateway = new Modelgate({ baseURL: baseURL ?? "", key: key ?? "" });

test("keys are issued, listed page by page and revoked", { skip }, async () => {
  assert.equal((await gateway.me()).scopes.length, 3);
  const issued = new Set();
  for (let i = 0; i < 5; i++) {
    const k = await gateway.issueKey({ scopes: ["stats:read"], entitlements: [], expires_in_seconds: 3600 });
    assert.match(k.key, /^gw_live_[0-9a-f]{48}$/);
    issued.add(k.api_key_id);
  }
  for await (const k of gateway.keys({ limit: 2 })) issued.delete(k.id);
  assert.equal(issued.size, 0);
  for await (const k of gateway.keys({ limit: 1 })) {
    await gateway.revokeKey(k.id);
    break;
  }
});

test("errors have a type", { skip }, async () => {
  await assert.rejects(gateway.revokeKey("00000000-0000-7000-8000-000000000000"), (e) => {
    assert.ok(e instanceof ModelgateError);
    assert.deepEqual([e.status, e.type], [404, "not_found"]);
    assert.match(e.requestID, /^[0-9a-f-]{36}$/);
    return true;
  });
  await assert.rejects(gateway.keys({ limit: 5000 }).next(), { type: "bad_request" });
  await assert.rejects(new Modelgate({ baseURL, key: "gw_live_none" }).me(), { type: "unauthorized" });
});

test("budgets and sub-accounts", { skip }, async () => {
  await gateway.putBudget({ scope: "client", period: "day", limit_usd: 2.5 });
  assert.equal((await gateway.budgets()).find((b) => b.period === "day").limit_usd, 2.5);
  await gateway.deleteBudget({ scope: "client", period: "day" });
  const sub = await gateway.createSubAccount({ name: "From outside", slug: "outside-js" });
  await gateway.updateSubAccount(sub.id, { markup_pct: 12.5 });
  await assert.rejects(gateway.createSubAccount({ name: "Again", slug: "outside-js" }), { type: "conflict" });
});

test("a call is known to come from an official client", { skip }, async () => {
  assert.match(userAgent, /^Modelgate\/JS /);
  const answer = await gateway.call("/v1/chat/completions", { model: "openai/gpt-5-mini", messages: [{ role: "user", content: "hi" }] }, { team: "outside-js" });
  await answer.json();
  const rows = [];
  for await (const row of gateway.usage({ id: answer.headers.get("x-gateway-request-id") })) rows.push(row);
  assert.equal(rows.length, 1);
  assert.ok(rows[0].via_sdk && rows[0].attribution.team === "outside-js" && rows[0].cost_usd > 0);
});

test("model calls and exports have no limit in time of the client's own", async () => {
  const limited = [];
  const fetch = async (url, init) => {
    limited.push(init.signal !== undefined);
    return new Response("{}", { status: 200 });
  };
  for (const timeout of [undefined, 5000]) {
    const g = new Modelgate({ baseURL: "http://gateway", key: "k", fetch, timeout });
    await g.call("/v1/chat/completions", {});
    await g.evidence();
    await g.me();
  }
  assert.deepEqual(limited, [false, false, true, true, true, true]);
});
