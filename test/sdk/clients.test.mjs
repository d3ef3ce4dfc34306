// Every client makes the same calls through a gateway, which stands behind
// GATEWAY_URL and takes GATEWAY_KEY: a question and a call of a tool whose result
// is sent back, each whole and streamed, and a question with a wrong key. The Go
// test that starts this compares the gateway's books with those of the providers.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogle } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import { ChatAnthropic } from '@langchain/anthropic';
import { HumanMessage, ToolMessage } from '@langchain/core/messages';
import { ChatOpenAI } from '@langchain/openai';
import { Agent, OpenAIProvider, Runner, setTracingDisabled, tool as agentTool } from '@openai/agents';
import { OpenRouter } from '@openrouter/sdk';
import * as ai6 from 'ai';
import * as ai7 from 'ai-7';
import { CohereClient, CohereError } from 'cohere-ai';
import OpenAI from 'openai';

const { GATEWAY_URL: url, GATEWAY_KEY: key } = process.env;
const chatModel = 'openai/gpt-5-mini';
const messagesModel = 'anthropic/claude-haiku-4.5';
const geminiModel = 'gemini-2.5-flash';
const cohereModel = 'command-a-03-2025';
setTracingDisabled(true);

const question = 'hello world';
const answer = 'This is a simulated answer to: hello world';
// The simulated providers call a tool that the prompt names.
const order = 'ask the weather tool [[arguments={"city":"Oslo"}]]';
const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false };
const description = 'Tells the weather.';

// weather is the tool. Its result comes back in the answer to it.
function weather({ city }) {
  assert.equal(city, 'Oslo');
  return `rain-in-${city}`;
}

// Each client is made for a key. ask answers a prompt with the text at the end,
// having called the tool where the model asks for it; stream does the same with
// streams. fails checks the error that a wrong key gets.
const clients = {
  'openai, chat': (apiKey) => {
    const completions = new OpenAI({ apiKey, baseURL: `${url}/v1`, maxRetries: 0 }).chat.completions;
    const ask = (stream) => (prompt) => completions.runTools({
      model: chatModel, stream, messages: [{ role: 'user', content: prompt }],
      tools: [{ type: 'function', function: { name: 'weather', description, parameters: schema, parse: JSON.parse, function: weather } }],
    }).finalContent();
    return { ask: ask(false), stream: ask(true), fails: (e) => assert.ok(e instanceof OpenAI.AuthenticationError, `${e}`) };
  },

  'openai, responses': (apiKey) => {
    const responses = new OpenAI({ apiKey, baseURL: `${url}/v1`, maxRetries: 0 }).responses;
    const converse = (respond) => async (prompt) => {
      const input = [{ role: 'user', content: prompt }];
      for (;;) {
        const response = await respond({ model: chatModel, store: false, input, tools: [{ type: 'function', name: 'weather', description, parameters: schema, strict: true }] });
        const call = response.output.find((item) => item.type === 'function_call');
        if (!call) return response.output_text;
        input.push(call, { type: 'function_call_output', call_id: call.call_id, output: weather(JSON.parse(call.arguments)) });
      }
    };
    return {
      ask: converse((body) => responses.create(body)),
      stream: converse((body) => responses.stream(body).finalResponse()),
      fails: (e) => assert.ok(e instanceof OpenAI.AuthenticationError, `${e}`),
    };
  },

  '@anthropic-ai/sdk': (apiKey) => {
    const sdk = new Anthropic({ apiKey, baseURL: url, maxRetries: 0 }).messages;
    const converse = (respond) => async (prompt) => {
      const messages = [{ role: 'user', content: prompt }];
      for (;;) {
        const { content } = await respond({ model: messagesModel, max_tokens: 100, messages, tools: [{ name: 'weather', description, input_schema: schema }] });
        const call = content.find((block) => block.type === 'tool_use');
        if (!call) return content.map((block) => block.text).join('');
        const result = { type: 'tool_result', tool_use_id: call.id, content: weather(call.input) };
        messages.push({ role: 'assistant', content }, { role: 'user', content: [result] });
      }
    };
    return {
      ask: converse((body) => sdk.create(body)),
      stream: converse((body) => sdk.stream(body).finalMessage()),
      fails: (e) => assert.ok(e instanceof Anthropic.AuthenticationError, `${e}`),
    };
  },

  '@google/genai': (apiKey) => {
    const { models } = new GoogleGenAI({ apiKey, httpOptions: { baseUrl: `${url}/gemini` } });
    const converse = (respond) => async (prompt) => {
      const contents = [{ role: 'user', parts: [{ text: prompt }] }];
      for (;;) {
        const config = { tools: [{ functionDeclarations: [{ name: 'weather', description, parametersJsonSchema: schema }] }] };
        const parts = await respond({ model: geminiModel, contents, config });
        const call = parts.find((part) => part.functionCall)?.functionCall;
        if (!call) return parts.map((part) => part.text ?? '').join('');
        const functionResponse = { name: call.name, response: { output: weather(call.args) } };
        contents.push({ role: 'model', parts }, { role: 'user', parts: [{ functionResponse }] });
      }
    };
    const partsOf = (response) => response.candidates[0].content?.parts ?? [];
    return {
      ask: converse(async (request) => partsOf(await models.generateContent(request))),
      stream: converse(async (request) => {
        const parts = [];
        for await (const chunk of await models.generateContentStream(request)) parts.push(...partsOf(chunk));
        return parts;
      }),
      fails: (e) => assert.equal(e.status, 401),
    };
  },

  'cohere-ai': (apiKey) => {
    const { v2 } = new CohereClient({ token: apiKey, environment: `${url}/cohere`, maxRetries: 0 });
    const tools = [{ type: 'function', function: { name: 'weather', description, parameters: schema } }];
    const converse = (respond) => async (prompt) => {
      const messages = [{ role: 'user', content: prompt }];
      for (;;) {
        const { content, toolCalls } = await respond({ model: cohereModel, messages, tools });
        if (!toolCalls?.length) return content.map((part) => part.text).join('');
        const [call] = toolCalls;
        const result = { role: 'tool', toolCallId: call.id, content: weather(JSON.parse(call.function.arguments)) };
        messages.push({ role: 'assistant', toolCalls }, result);
      }
    };
    return {
      ask: converse(async (request) => (await v2.chat(request)).message),
      stream: converse(async (request) => {
        const message = { content: [{ text: '' }], toolCalls: [] };
        for await (const { type, delta } of await v2.chatStream(request)) {
          if (type === 'content-delta') message.content[0].text += delta.message.content.text;
          if (type === 'tool-call-start') message.toolCalls.push(delta.message.toolCalls);
          if (type === 'tool-call-delta') message.toolCalls.at(-1).function.arguments += delta.message.toolCalls.function.arguments;
        }
        return message;
      }),
      fails: (e) => assert.ok(e instanceof CohereError && e.statusCode === 401, `${e}`),
    };
  },

  '@openrouter/sdk': (apiKey) => {
    const { chat } = new OpenRouter({ apiKey, serverURL: `${url}/v1`, retryConfig: { strategy: 'none' } });
    const tools = [{ type: 'function', function: { name: 'weather', description, parameters: schema } }];
    const converse = (respond) => async (prompt) => {
      const messages = [{ role: 'user', content: prompt }];
      for (;;) {
        const message = await respond({ model: chatModel, messages, tools });
        if (!message.toolCalls?.length) return message.content;
        const [call] = message.toolCalls;
        messages.push(message, { role: 'tool', toolCallId: call.id, content: weather(JSON.parse(call.function.arguments)) });
      }
    };
    return {
      ask: converse(async (chatRequest) => (await chat.send({ chatRequest })).choices[0].message),
      stream: converse(async (chatRequest) => {
        const message = { role: 'assistant', content: '' };
        for await (const { choices: [choice] } of await chat.send({ chatRequest: { ...chatRequest, stream: true } })) {
          message.content += choice?.delta.content ?? '';
          for (const piece of choice?.delta.toolCalls ?? []) {
            message.toolCalls ??= [{ id: piece.id, type: 'function', function: { name: piece.function.name, arguments: '' } }];
            message.toolCalls[0].function.arguments += piece.function.arguments ?? '';
          }
        }
        return message;
      }),
      fails: (e) => assert.equal(e.statusCode, 401, `${e}`),
    };
  },

  ...vercel('ai, @ai-sdk/openai', ai6, (apiKey) => createOpenAI({ apiKey, baseURL: `${url}/v1` }).chat(chatModel)),
  ...vercel('ai, @ai-sdk/anthropic', ai6, (apiKey) => createAnthropic({ apiKey, baseURL: `${url}/v1` })(messagesModel)),
  ...vercel('ai, @ai-sdk/google', ai7, (apiKey) => createGoogle({ apiKey, baseURL: `${url}/gemini/v1beta` })(geminiModel)),
  ...vercel('ai, @ai-sdk/openai-compatible', ai7, (apiKey) => createOpenAICompatible({ name: 'modelgate', apiKey, baseURL: `${url}/v1` })(chatModel)),
  ...langchain('@langchain/openai', (apiKey) => new ChatOpenAI({ model: chatModel, apiKey, maxRetries: 0, configuration: { baseURL: `${url}/v1` } })),
  ...langchain('@langchain/anthropic', (apiKey) => new ChatAnthropic({ model: messagesModel, apiKey, maxRetries: 0, anthropicApiUrl: url })),
  ...agents('@openai/agents, chat', false),
  ...agents('@openai/agents, responses', true),
};

function vercel(name, { generateText, streamText, tool, jsonSchema, stepCountIs, isStepCount, APICallError }, model) {
  const tools = { weather: tool({ description, inputSchema: jsonSchema(schema), execute: weather }) };
  const atMost = isStepCount ?? stepCountIs;
  return {
    [name]: (apiKey) => {
      const request = { model: model(apiKey), tools, stopWhen: atMost(3), maxRetries: 0 };
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
    },
  };
}

function langchain(name, make) {
  return {
    [name]: (apiKey) => {
      const model = make(apiKey).bindTools([{ type: 'function', function: { name: 'weather', description, parameters: schema } }]);
      const converse = (respond) => async (prompt) => {
        const messages = [new HumanMessage(prompt)];
        for (;;) {
          const message = await respond(messages);
          const [call] = message.tool_calls ?? [];
          if (!call) return message.text;
          messages.push(message, new ToolMessage({ tool_call_id: call.id, content: weather(call.args) }));
        }
      };
      return {
        ask: converse((messages) => model.invoke(messages)),
        stream: converse(async (messages) => {
          let whole;
          for await (const chunk of await model.stream(messages)) whole = whole ? whole.concat(chunk) : chunk;
          return whole;
        }),
        fails: (e) => assert.equal(e.status, 401, `${e}`),
      };
    },
  };
}

function agents(name, useResponses) {
  return {
    [name]: (apiKey) => {
      const modelProvider = new OpenAIProvider({ apiKey, baseURL: `${url}/v1`, useResponses });
      const runner = new Runner({ modelProvider, tracingDisabled: true });
      const agent = new Agent({
        name: 'tester', model: chatModel, modelSettings: { store: false },
        tools: [agentTool({ name: 'weather', description, parameters: schema, strict: true, execute: weather })],
      });
      return {
        ask: async (prompt) => (await runner.run(agent, prompt)).finalOutput,
        stream: async (prompt) => {
          const result = await runner.run(agent, prompt, { stream: true });
          for await (const _ of result);
          await result.completed;
          return result.finalOutput;
        },
        fails: (e) => assert.equal(e.status, 401, `${e}`),
      };
    },
  };
}

for (const [name, make] of Object.entries(clients)) {
  for (const way of ['ask', 'stream']) {
    test(`${name}: ${way}`, async () => assert.equal(await make(key)[way](question), answer));
    test(`${name}: ${way} with a tool`, async () => assert.match(await make(key)[way](order), /rain-in-Oslo/));
  }
  test(`${name}: a wrong key`, async () => {
    const client = make(`${key.slice(0, -1)}x`);
    await assert.rejects(client.ask(question), (e) => {
      client.fails(e);
      assert.match(`${e.message} ${JSON.stringify(e)}`, /invalid gateway key/);
      return true;
    });
  });
}
