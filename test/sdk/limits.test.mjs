// What SDKs do with an answer of 429 of a rate limit: they wait as long as it
// says and try once more, and give up at once where that would take an hour.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import Anthropic from '@anthropic-ai/sdk';
import Anthropic0 from '@anthropic-ai/sdk-0';
import OpenAI from 'openai';

const url = process.env.GATEWAY_URL.replace(/\/+$/, '');

const gw = async (method, path, body) => {
  const response = await fetch(url + path, { method, headers: { Authorization: `Bearer ${process.env.GATEWAY_KEY}`, 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${await response.clone().text()}`);
  return response.status === 204 ? undefined : response.json();
};

// limited is a key with one rate limit.
const limited = async (limit) => {
  const { api_key_id: id, key } = await gw('POST', '/gw/keys', { name: 'limited', scopes: ['inference:use'] });
  await gw('PUT', '/gw/limits', { scope: 'key', id, window: 'minute', ...limit });
  return key;
};

// watching is fetch that notes each exchange.
const watching = (seen) => async (...args) => {
  const began = performance.now();
  const response = await fetch(...args);
  seen.push({ began, ended: performance.now(), status: response.status, headers: response.headers });
  return response;
};

const say = (content, extra) => ({ messages: [{ role: 'user', content }], ...extra });

const sdks = {
  OpenAI: (apiKey, fetch) => {
    const client = new OpenAI({ apiKey, baseURL: `${url}/v1`, fetch });
    return (text) => client.chat.completions.create(say(text, { model: 'openai/gpt-5-mini' }));
  },
  Anthropic: (apiKey, fetch) => {
    const client = new Anthropic({ apiKey, baseURL: url, fetch });
    return (text) => client.messages.create(say(text, { model: 'anthropic/claude-haiku-4.5', max_tokens: 100 }));
  },
  'Anthropic 0': (apiKey, fetch) => {
    const client = new Anthropic0({ apiKey, baseURL: url, fetch });
    return (text) => client.messages.create(say(text, { model: 'anthropic/claude-haiku-4.5', max_tokens: 100 }));
  },
};

for (const [name, connect] of Object.entries(sdks)) {
  test(`${name}: after two seconds it tries once more`, { concurrency: true }, async () => {
    const seen = [];
    const call = connect(await limited({ unit: 'requests', limit: 30, burst: 1 }), watching(seen));
    await call('hello world'); // takes the only request of two seconds
    seen.length = 0;
    await call('hello world');
    const [refused, admitted, ...more] = seen;
    assert.deepEqual([refused.status, admitted?.status, more.length], [429, 200, 0]);
    const wait = Number(refused.headers.get('retry-after'));
    assert.ok(wait === 2 || wait === 1, `Retry-After: ${wait}`); // 1 where the machine took a second over the first call
    assert.ok(admitted.began - refused.ended >= wait * 1000 - 5, `it came back after ${admitted.began - refused.ended} ms`);
    assert.equal(refused.headers.get('x-should-retry'), null);
  });

  test(`${name}: it does not wait for an hour`, { concurrency: true }, async () => {
    const seen = [];
    // The first call uses all 60 tokens, of which one comes back a minute.
    const call = connect(await limited({ unit: 'tokens', limit: 1, burst: 60 }), watching(seen));
    const words = Array(27).fill('word').join(' ');
    await call(words);
    seen.length = 0;
    const began = performance.now();
    await assert.rejects(call(words), (error) => {
      assert.equal(error.status, 429);
      assert.equal(error.constructor.name, 'RateLimitError');
      return true;
    });
    assert.deepEqual(seen.map((x) => x.status), [429]);
    const { headers } = seen[0];
    const wait = Number(headers.get('retry-after'));
    assert.ok(wait > 3500 && wait <= 3600, `Retry-After: ${wait}`);
    assert.equal(headers.get('x-should-retry'), 'false');
    assert.ok(performance.now() - began < 3500_000);
  });
}
