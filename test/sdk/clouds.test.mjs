// The clouds' own clients, unmodified, make the same calls through a gateway, which
// stands behind GATEWAY_URL and takes GATEWAY_KEY: a question and a call of a tool
// whose result is sent back, each whole and streamed, and a question with a wrong
// key. The Go test that starts this compares the gateway's books with those of the
// clouds.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { createAmazonBedrock } from '@ai-sdk/amazon-bedrock';
import { createVertex } from '@ai-sdk/google-vertex';
import { AnthropicBedrock, AnthropicBedrockMantle } from '@anthropic-ai/bedrock-sdk';
import { AnthropicVertex } from '@anthropic-ai/vertex-sdk';
import { BedrockRuntimeClient, ConverseCommand, ConverseStreamCommand } from '@aws-sdk/client-bedrock-runtime';
import { GoogleGenAI } from '@google/genai';
import * as ai6 from 'ai';
import { AzureOpenAI, BedrockOpenAI } from 'openai';

const { GATEWAY_URL: url, GATEWAY_KEY: key } = process.env;
const bedrockModel = 'eu.anthropic.claude-haiku-4-5-20251001-v1:0';
const vertexModel = 'claude-haiku-4-5@20251001';
const geminiModel = 'gemini-2.5-flash';

const question = 'hello world';
const answer = 'This is a simulated answer to: hello world';
const order = 'ask the weather tool [[arguments={"city":"Oslo"}]]';
const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false };
const description = 'Tells the weather.';

// weather is the tool. Its result comes back in the answer to it.
function weather({ city }) {
  assert.equal(city, 'Oslo');
  return `rain-in-${city}`;
}

// anthropic talks to Anthropic's API through one of its clients.
function anthropic(make, model) {
  return (apiKey) => {
    const sdk = make(apiKey).messages;
    const converse = (respond) => async (prompt) => {
      const messages = [{ role: 'user', content: prompt }];
      for (;;) {
        const { content } = await respond({ model, max_tokens: 100, messages, tools: [{ name: 'weather', description, input_schema: schema }] });
        const call = content.find((block) => block.type === 'tool_use');
        if (!call) return content.map((block) => block.text).join('');
        messages.push({ role: 'assistant', content }, { role: 'user', content: [{ type: 'tool_result', tool_use_id: call.id, content: weather(call.input) }] });
      }
    };
    return {
      ask: converse((body) => sdk.create(body)),
      stream: converse((body) => sdk.stream(body).finalMessage()),
      fails: (e) => assert.equal(e.status, 401, `${e}`),
    };
  };
}

// openai talks to OpenAI's API through one of its clients.
function openai(make, model) {
  return (apiKey) => {
    const ask = (stream) => (prompt) => make(apiKey).chat.completions.runTools({
      model, stream, messages: [{ role: 'user', content: prompt }],
      tools: [{ type: 'function', function: { name: 'weather', description, parameters: schema, parse: JSON.parse, function: weather } }],
    }).finalContent();
    return { ask: ask(false), stream: ask(true), fails: (e) => assert.equal(e.status, 401, `${e}`) };
  };
}

// vercel talks to a model of the AI SDK.
function vercel(model) {
  return (apiKey) => {
    const { generateText, streamText, tool, jsonSchema, stepCountIs, APICallError } = ai6;
    const tools = { weather: tool({ description, inputSchema: jsonSchema(schema), execute: weather }) };
    const request = { model: model(apiKey), tools, stopWhen: stepCountIs(3), maxRetries: 0 };
    return {
      ask: async (prompt) => (await generateText({ ...request, prompt })).text,
      stream: async (prompt) => {
        let failure;
        const result = streamText({ ...request, prompt, onError: ({ error }) => { failure = error; } });
        await result.consumeStream();
        assert.ifError(failure);
        return result.text;
      },
      fails: (e) => assert.ok(APICallError.isInstance(e) && e.statusCode === 401, `${e}`),
    };
  };
}

const clients = {
  // Its default handler speaks HTTP/2 only, also without TLS.
  '@aws-sdk/client-bedrock-runtime': (apiKey) => {
    const client = new BedrockRuntimeClient({
      region: 'eu-central-1', endpoint: `${url}/bedrock`, token: { token: apiKey }, authSchemePreference: ['httpBearerAuth'], maxAttempts: 1,
    });
    const toolConfig = { tools: [{ toolSpec: { name: 'weather', description, inputSchema: { json: schema } } }] };
    const converse = (respond) => async (prompt) => {
      const messages = [{ role: 'user', content: [{ text: prompt }] }];
      for (;;) {
        const content = await respond({ modelId: bedrockModel, messages, toolConfig, inferenceConfig: { maxTokens: 100 } });
        const call = content.find((block) => block.toolUse)?.toolUse;
        if (!call) return content.map((block) => block.text).join('');
        messages.push({ role: 'assistant', content }, { role: 'user', content: [{ toolResult: { toolUseId: call.toolUseId, content: [{ text: weather(call.input) }] } }] });
      }
    };
    return {
      ask: converse(async (input) => (await client.send(new ConverseCommand(input))).output.message.content),
      stream: converse(async (input) => {
        const content = [];
        for await (const event of (await client.send(new ConverseStreamCommand(input))).stream) {
          const { contentBlockStart: start, contentBlockDelta: delta } = event;
          if (start?.start?.toolUse) content[start.contentBlockIndex] = { toolUse: { ...start.start.toolUse, input: '' } };
          if (delta?.delta.text) (content[delta.contentBlockIndex] ??= { text: '' }).text += delta.delta.text;
          if (delta?.delta.toolUse) content[delta.contentBlockIndex].toolUse.input += delta.delta.toolUse.input;
        }
        return content.map((block) => block.toolUse ? { toolUse: { ...block.toolUse, input: JSON.parse(block.toolUse.input) } } : block);
      }),
      fails: (e) => assert.ok(e.name === 'UnrecognizedClientException' && e.$metadata.httpStatusCode === 401, `${e}`),
    };
  },
  '@anthropic-ai/bedrock-sdk': anthropic((apiKey) => new AnthropicBedrock({ apiKey, awsRegion: 'eu-central-1', baseURL: `${url}/bedrock`, maxRetries: 0 }), bedrockModel),
  '@anthropic-ai/bedrock-sdk, Mantle': anthropic((apiKey) => new AnthropicBedrockMantle({ apiKey, awsRegion: 'eu-central-1', baseURL: `${url}/bedrock/anthropic`, maxRetries: 0 }), bedrockModel),
  '@anthropic-ai/vertex-sdk': anthropic((apiKey) => new AnthropicVertex({
    authClient: { getRequestHeaders: async () => new Headers({ Authorization: `Bearer ${apiKey}` }) },
    region: 'europe-west4', projectId: '-', baseURL: `${url}/vertex/v1`, maxRetries: 0,
  }), vertexModel),
  '@google/genai, Vertex': (apiKey) => {
    const { models } = new GoogleGenAI({ enterprise: true, apiKey, httpOptions: { baseUrl: `${url}/vertex` } });
    const config = { tools: [{ functionDeclarations: [{ name: 'weather', description, parametersJsonSchema: schema }] }] };
    const converse = (respond) => async (prompt) => {
      const contents = [{ role: 'user', parts: [{ text: prompt }] }];
      for (;;) {
        const parts = await respond({ model: geminiModel, contents, config });
        const call = parts.find((part) => part.functionCall)?.functionCall;
        if (!call) return parts.map((part) => part.text ?? '').join('');
        contents.push({ role: 'model', parts }, { role: 'user', parts: [{ functionResponse: { name: call.name, response: { output: weather(call.args) } } }] });
      }
    };
    return {
      ask: converse(async (request) => (await models.generateContent(request)).candidates[0].content.parts),
      stream: converse(async (request) => {
        const parts = [];
        for await (const chunk of await models.generateContentStream(request)) parts.push(...chunk.candidates?.[0].content?.parts ?? []);
        return parts;
      }),
      fails: (e) => assert.equal(e.status, 401, `${e}`),
    };
  },
  '@ai-sdk/amazon-bedrock': vercel((apiKey) => createAmazonBedrock({ apiKey, region: 'eu-central-1', baseURL: `${url}/bedrock` })(bedrockModel)),
  '@ai-sdk/google-vertex': vercel((apiKey) => createVertex({ apiKey, baseURL: `${url}/vertex/v1beta1/publishers/google` })(geminiModel)),
  'openai, AzureOpenAI': openai((apiKey) => new AzureOpenAI({ apiKey, endpoint: `${url}/azure`, apiVersion: '2024-10-21', maxRetries: 0 }), 'deployment-1'),
  'openai, BedrockOpenAI': openai((apiKey) => new BedrockOpenAI({ apiKey, awsRegion: 'eu-central-1', baseURL: `${url}/bedrock/openai/v1`, maxRetries: 0 }), bedrockModel),
};

for (const [name, make] of Object.entries(clients)) {
  for (const way of ['ask', 'stream']) {
    test(`${name}: ${way}`, async () => assert.equal(await make(key)[way](question), answer));
    test(`${name}: ${way} with a tool`, async () => assert.match(await make(key)[way](order), /rain-in-Oslo/));
  }
  test(`${name}: a wrong key`, async () => {
    const client = make(`${key.slice(0, -1)}x`);
    await assert.rejects(client.ask(question), (e) => {
      client.fails(e);
      return true;
    });
  });
}
