// Run by the tests of cmd/modelgate, which start the gateway.
import assert from "node:assert/strict";
import { test } from "node:test";
import { body, modelgate, ModelgateError, pages, userAgent } from "../dist/index.js";

const baseURL = process.env.GATEWAY_URL;
const key = process.env.GATEWAY_KEY;
const skip = !baseURL || !key ? "needs GATEWAY_URL and GATEWAY_KEY of a running gateway" : false;
const gateway = modelgate({ baseURL: baseURL ?? "", key: key ?? "" });
const keys = (query) => pages((page) => gateway.GET("/gw/keys", { params: { query: { ...query, ...page } } }));
const revoke = (id) => gateway.DELETE("/gw/keys/{id}", { params: { path: { id } } });

test("keys are issued, listed page by page and revoked", { skip }, async () => {
  assert.equal((await body(gateway.GET("/gw/me"))).scopes.length, 3);
  const issued = new Set();
  for (let i = 0; i < 5; i++) {
    const k = await body(gateway.POST("/gw/keys", { body: { scopes: ["stats:read"], entitlements: [], expires_in_seconds: 3600 } }));
    assert.match(k.key, /^gw_live_[0-9a-f]{48}$/);
    issued.add(k.api_key_id);
  }
  for await (const k of keys({ limit: 2 })) issued.delete(k.id);
  assert.equal(issued.size, 0);
  for await (const k of keys({ limit: 1 })) {
    await revoke(k.id);
    break;
  }
});

test("errors have a type", { skip }, async () => {
  await assert.rejects(revoke("00000000-0000-7000-8000-000000000000"), (e) => {
    assert.ok(e instanceof ModelgateError);
    assert.deepEqual([e.status, e.type], [404, "not_found"]);
    assert.match(e.requestID, /^[0-9a-f-]{36}$/);
    return true;
  });
  await assert.rejects(keys({ limit: 5000 }).next(), { type: "bad_request" });
  await assert.rejects(modelgate({ baseURL, key: "gw_live_none" }).GET("/gw/me"), { type: "unauthorized" });
});

test("budgets and sub-accounts", { skip }, async () => {
  await gateway.PUT("/gw/budgets", { body: { scope: "client", period: "day", limit_usd: 2.5 } });
  assert.equal((await body(gateway.GET("/gw/budgets"))).find((b) => b.period === "day").limit_usd, 2.5);
  await gateway.DELETE("/gw/budgets", { params: { query: { scope: "client", period: "day" } } });
  const sub = await body(gateway.POST("/gw/subaccounts", { body: { name: "From outside", slug: "outside-js" } }));
  await gateway.PATCH("/gw/subaccounts/{id}", { params: { path: { id: sub.id } }, body: { markup_pct: 12.5 } });
  await assert.rejects(gateway.POST("/gw/subaccounts", { body: { name: "Again", slug: "outside-js" } }), { type: "conflict" });
});

test("a call is known to come from an official client", { skip }, async () => {
  assert.match(userAgent, /^Modelgate\/JS /);
  const answer = await gateway.call("/v1/chat/completions", { model: "openai/gpt-5-mini", messages: [{ role: "user", content: "hi" }] }, { team: "outside-js" });
  await answer.json();
  const rows = [];
  const id = answer.headers.get("x-gateway-request-id");
  for await (const row of pages((page) => gateway.GET("/gw/usage", { params: { query: { id, ...page } } }))) rows.push(row);
  assert.equal(rows.length, 1);
  assert.ok(rows[0].via_sdk && rows[0].attribution.team === "outside-js" && rows[0].cost_usd > 0);
});

test("model calls and exports have no limit in time of the client's own", async () => {
  const limited = [];
  const timeout = AbortSignal.timeout;
  let limits = 0;
  AbortSignal.timeout = (ms) => (limits++, timeout(ms));
  const fetch = async () => new Response("{}", { status: 200 });
  for (const given of [undefined, 5000]) {
    const g = modelgate({ baseURL: "http://gateway", key: "k", fetch, ...(given ? { timeout: given } : {}) });
    for (const ask of [() => g.call("/v1/chat/completions", {}), () => g.GET("/gw/evidence", { parseAs: "stream" }), () => g.GET("/gw/me")]) {
      limits = 0;
      await ask();
      limited.push(limits > 0);
    }
  }
  AbortSignal.timeout = timeout;
  assert.deepEqual(limited, [false, false, true, true, true, true]);
});
