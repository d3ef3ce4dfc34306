// Calls through a gateway with the SDKs that its users have. It stands behind
// GATEWAY_URL, takes GATEWAY_KEY and has simulated providers, which answer
// "This is a simulated answer to: <prompt>" and count words as tokens.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import Anthropic from '@anthropic-ai/sdk';
import Anthropic0 from '@anthropic-ai/sdk-0';
import { GoogleGenAI } from '@google/genai';
import { ChatOpenAI, OpenAIEmbeddings } from '@langchain/openai';
import {
  APICallError, embedMany, experimental_generateImage as generateImage, experimental_generateSpeech as generateSpeech,
  experimental_transcribe as transcribe, generateText, streamText,
} from 'ai';
import { CohereClient } from 'cohere-ai';
import OpenAI from 'openai';

const url = required('GATEWAY_URL').replace(/\/+$/, '');
const key = required('GATEWAY_KEY');
const chatModel = process.env.GATEWAY_CHAT_MODEL ?? 'openai/gpt-5-mini';
const messagesModel = process.env.GATEWAY_MESSAGES_MODEL ?? 'anthropic/claude-haiku-4.5';
const embeddingModel = process.env.GATEWAY_EMBEDDING_MODEL ?? 'openai/text-embedding-3-small';
const imageModel = process.env.GATEWAY_IMAGE_MODEL ?? 'openai/gpt-image-1';
const speechModel = process.env.GATEWAY_SPEECH_MODEL ?? 'openai/tts-1';
const transcriptionModel = process.env.GATEWAY_TRANSCRIPTION_MODEL ?? 'openai/whisper-1';
const videoModel = process.env.GATEWAY_VIDEO_MODEL ?? 'openai/sora-2';
const rerankModel = process.env.GATEWAY_RERANK_MODEL ?? 'cohere/rerank-v3.5';

const prompt = 'hello world';
const answer = 'This is a simulated answer to: hello world';
const spent = { input: 2, output: 8, total: 10 };
const messages = [{ role: 'user', content: prompt }];
const requestId = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

function required(name) {
  const value = process.env[name];
  if (!value) throw new Error(`set ${name}`);
  return value;
}

const openai = (apiKey = key) => new OpenAI({ apiKey, baseURL: `${url}/v1`, maxRetries: 0 });

test('openai: chat', async () => {
  const { data, response } = await openai().chat.completions.create({ model: chatModel, messages }).withResponse();
  assert.equal(data.choices[0].message.content, answer);
  assert.equal(data.choices[0].finish_reason, 'stop');
  assert.equal(data.usage.prompt_tokens, spent.input);
  assert.equal(data.usage.completion_tokens, spent.output);
  assert.equal(data.usage.total_tokens, spent.total);
  assert.match(response.headers.get('x-gateway-request-id'), requestId);
});

test('openai: video, from its creation to the file', async () => {
  const videos = openai().videos;
  const made = await videos.create({ model: videoModel, prompt: 'a kite', seconds: '4' });
  assert.equal(made.status, 'queued');
  let video = made;
  for (let polls = 0; video.status === 'queued' || video.status === 'in_progress'; polls++) {
    assert.ok(polls < 100, `still ${video.status}`);
    video = await videos.retrieve(made.id);
  }
  assert.equal(video.status, 'completed');
  assert.equal(video.id, made.id);
  const film = Buffer.from(await (await videos.downloadContent(made.id)).arrayBuffer());
  assert.equal(film.subarray(4, 8).toString(), 'ftyp');
  assert.equal((await videos.delete(made.id)).deleted, true);
  await assert.rejects(videos.retrieve('video_of_nobody'), (error) => error.status === 404);
});

test('openai: chat stream', async () => {
  const stream = await openai().chat.completions.create({ model: chatModel, messages, stream: true });
  let text = '';
  for await (const chunk of stream) {
    // Whoever did not ask for usage gets no chunk that only holds it.
    assert.equal(chunk.choices.length, 1);
    assert.ok(!chunk.usage, 'a chunk has usage that nobody asked for');
    text += chunk.choices[0].delta.content ?? '';
  }
  assert.equal(text, answer);
});

test('openai: chat stream with usage', async () => {
  const stream = await openai().chat.completions.create({ model: chatModel, messages, stream: true, stream_options: { include_usage: true } });
  let text = '';
  const usage = [];
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta.content ?? '';
    if (chunk.usage) usage.push(chunk.usage);
  }
  assert.equal(text, answer);
  assert.equal(usage.length, 1);
  assert.equal(usage[0].prompt_tokens, spent.input);
  assert.equal(usage[0].total_tokens, spent.total);
});

test('openai: embeddings', async () => {
  const input = ['one two three', 'four'];
  const vectors = [];
  // The SDK asks for base64 unless it is told a format, and decodes it.
  for (const format of [{}, { encoding_format: 'float' }]) {
    const result = await openai().embeddings.create({ model: embeddingModel, input, ...format });
    assert.deepEqual(result.data.map((e) => e.index), [0, 1]);
    assert.equal(result.usage.prompt_tokens, 4);
    assert.equal(result.usage.total_tokens, 4);
    vectors.push(result.data.map((e) => Array.from(e.embedding)));
  }
  const [decoded, plain] = vectors;
  assert.ok(plain[0].length > 1);
  assert.deepEqual(decoded, plain.map((v) => v.map(Math.fround)));
  assert.notDeepEqual(plain[0], plain[1]);
});

test('openai: responses', async () => {
  const result = await openai().responses.create({ model: chatModel, input: prompt });
  assert.equal(result.output_text, answer);
  assert.equal(result.status, 'completed');
  assert.equal(result.usage.input_tokens, spent.input);
  assert.equal(result.usage.output_tokens, spent.output);
});

test('openai: responses stream', async () => {
  const stream = await openai().responses.create({ model: chatModel, input: prompt, stream: true });
  let text = '';
  let last;
  for await (const event of stream) {
    if (event.type === 'response.output_text.delta') text += event.delta;
    last = event;
  }
  assert.equal(text, answer);
  assert.equal(last.type, 'response.completed');
  assert.equal(last.response.usage.total_tokens, spent.total);
});

test('openai: models', async () => {
  const listed = [];
  for await (const model of openai().models.list()) listed.push(model);
  const model = listed.find((m) => m.id === chatModel);
  assert.equal(model?.object, 'model');
  assert.equal(model.owned_by, chatModel.split('/')[0]);
  assert.ok(Number.isInteger(model.created));
  assert.ok(listed.some((m) => m.id === messagesModel), `${messagesModel} is not listed`);
  // The SDK escapes the slash of the slug.
  assert.deepEqual(await openai().models.retrieve(chatModel), model);
});

test('openai: errors', async () => {
  await assert.rejects(openai(`${key.slice(0, -1)}x`).chat.completions.create({ model: chatModel, messages }), (e) => {
    assert.ok(e instanceof OpenAI.AuthenticationError, `${e}`);
    assert.equal(e.status, 401);
    assert.equal(e.type, 'unauthorized');
    assert.match(e.message, /invalid gateway key/);
    assert.match(e.requestID, requestId);
    return true;
  });
  await assert.rejects(openai().chat.completions.create({ model: 'nobody/nothing', messages }), (e) => {
    assert.ok(e instanceof OpenAI.NotFoundError, `${e}`);
    assert.equal(e.type, 'not_found');
    assert.match(e.message, /model "nobody\/nothing" not found in catalog/);
    return true;
  });
  await assert.rejects(openai().chat.completions.create({ model: 'nothing', messages }), (e) => {
    assert.ok(e instanceof OpenAI.BadRequestError, `${e}`);
    assert.equal(e.type, 'bad_request');
    return true;
  });
});

// The majors differ in the header that carries the key.
for (const [major, SDK, header] of [[0, Anthropic0, 'x-api-key'], [1, Anthropic, 'authorization']]) {
  const client = (apiKey = key) => {
    const sent = [];
    const fetch = (target, init) => {
      sent.push(new Headers(init.headers));
      return globalThis.fetch(target, init);
    };
    return { sent, sdk: new SDK({ apiKey, baseURL: url, maxRetries: 0, fetch }) };
  };
  const params = { model: messagesModel, max_tokens: 100, messages };

  test(`anthropic ${major}.x: messages`, async () => {
    const { sdk, sent } = client();
    const result = await sdk.messages.create(params);
    assert.deepEqual(result.content.map((c) => c.text), [answer]);
    assert.equal(result.stop_reason, 'end_turn');
    assert.equal(result.usage.input_tokens, spent.input);
    assert.equal(result.usage.output_tokens, spent.output);
    assert.equal(sent.length, 1);
    assert.ok(sent[0].get(header)?.endsWith(key), `the key is not in ${header}`);
  });

  test(`anthropic ${major}.x: messages stream`, async () => {
    const stream = client().sdk.messages.stream(params);
    let text = '';
    stream.on('text', (delta) => { text += delta; });
    const final = await stream.finalMessage();
    assert.equal(text, answer);
    assert.equal(final.content[0].text, answer);
    assert.equal(final.usage.input_tokens, spent.input);
    assert.equal(final.usage.output_tokens, spent.output);
  });

  test(`anthropic ${major}.x: count tokens`, async () => {
    const counted = await client().sdk.messages.countTokens({ model: messagesModel, messages });
    assert.equal(counted.input_tokens, spent.input);
  });

  test(`anthropic ${major}.x: errors`, async () => {
    await assert.rejects(client(`${key.slice(0, -1)}x`).sdk.messages.create(params), (e) => {
      assert.ok(e instanceof SDK.AuthenticationError, `${e}`);
      assert.equal(e.error.error.type, 'unauthorized');
      assert.match(e.message, /invalid gateway key/);
      assert.match(e.requestID, requestId);
      return true;
    });
    await assert.rejects(client().sdk.messages.create({ ...params, model: 'nobody/nothing' }), (e) => {
      assert.ok(e instanceof SDK.NotFoundError, `${e}`);
      assert.equal(e.error.error.type, 'not_found');
      return true;
    });
  });
}

const aiOpenAI = createOpenAI({ apiKey: key, baseURL: `${url}/v1` });
const aiAnthropic = createAnthropic({ apiKey: key, baseURL: `${url}/v1` });

for (const [name, model] of [
  ['chat', aiOpenAI.chat(chatModel)],
  ['responses, its default', aiOpenAI(chatModel)],
  ['anthropic', aiAnthropic(messagesModel)],
]) {
  test(`ai: generate text by ${name}`, async () => {
    const result = await generateText({ model, prompt, maxRetries: 0 });
    assert.equal(result.text, answer);
    assert.equal(result.finishReason, 'stop');
    assert.equal(result.usage.inputTokens, spent.input);
    assert.equal(result.usage.outputTokens, spent.output);
  });

  test(`ai: stream text by ${name}`, async () => {
    let failure;
    const result = streamText({ model, prompt, maxRetries: 0, onError: ({ error }) => { failure = error; } });
    let text = '';
    for await (const part of result.textStream) text += part;
    assert.ifError(failure);
    assert.equal(text, answer);
    assert.equal((await result.usage).inputTokens, spent.input);
    assert.equal((await result.usage).outputTokens, spent.output);
  });
}

test('ai: a conversation on responses', async () => {
  const model = aiOpenAI(chatModel);
  const providerOptions = { openai: { store: false } };
  const first = await generateText({ model, prompt: 'first', providerOptions, maxRetries: 0 });
  const said = [{ role: 'user', content: 'first' }, ...first.response.messages, { role: 'user', content: prompt }];
  const second = await generateText({ model, messages: said, providerOptions, maxRetries: 0 });
  assert.match(second.text, /^This is a simulated answer to: /);
  // By default the SDK refers to what the provider has stored of the first answer.
  await assert.rejects(generateText({ model, messages: said, maxRetries: 0 }), (e) => {
    assert.ok(APICallError.isInstance(e), `${e}`);
    assert.equal(e.statusCode, 403);
    assert.match(e.message, /item_reference.*"store": false/);
    return true;
  });
});

test('ai: embed', async () => {
  const result = await embedMany({ model: aiOpenAI.textEmbeddingModel(embeddingModel), values: ['one two', 'three'], maxRetries: 0 });
  assert.equal(result.embeddings.length, 2);
  assert.ok(result.embeddings[0].length > 1);
  assert.equal(result.usage.tokens, 3);
});

test('ai: errors', async () => {
  await assert.rejects(generateText({ model: aiOpenAI.chat('nobody/nothing'), prompt, maxRetries: 0 }), (e) => {
    assert.ok(APICallError.isInstance(e), `${e}`);
    assert.equal(e.statusCode, 404);
    assert.match(e.responseBody, /not found in catalog/);
    return true;
  });
});

// Pictures, sound and films, each in the unit it is charged by.
test('openai: images', async () => {
  const result = await openai().images.generate({ model: imageModel, prompt, n: 2, size: '1024x1024' });
  assert.equal(result.data.length, 2);
  for (const { b64_json } of result.data) assert.ok(Buffer.from(b64_json, 'base64').subarray(1, 4).equals(Buffer.from('PNG')));
  assert.equal(result.usage.total_tokens, result.usage.input_tokens + result.usage.output_tokens);
});

test('openai: image stream', async () => {
  const stream = await openai().images.generate({ model: imageModel, prompt, stream: true, partial_images: 1 });
  const types = [];
  for await (const event of stream) types.push(event.type);
  assert.equal(types.at(-1), 'image_generation.completed');
  assert.ok(types.includes('image_generation.partial_image'));
});

test('openai: image edit', async () => {
  const image = await OpenAI.toFile(Buffer.from('\x89PNG'), 'a.png', { type: 'image/png' });
  const result = await openai().images.edit({ model: imageModel, prompt, image });
  assert.equal(result.data.length, 1);
});

test('openai: speech', async () => {
  const response = await openai().audio.speech.create({ model: speechModel, input: prompt, voice: 'alloy' });
  assert.match(response.headers.get('content-type'), /^audio\//);
  assert.ok((await response.arrayBuffer()).byteLength > 100);
});

test('openai: transcription', async () => {
  const file = await OpenAI.toFile(Buffer.alloc(40_000), 'a.wav', { type: 'audio/wav' });
  const result = await openai().audio.transcriptions.create({ model: transcriptionModel, file });
  assert.ok(result.text.length > 0);
  const translated = await openai().audio.translations.create({ model: transcriptionModel, file });
  assert.ok(translated.text.length > 0);
});

test('openai: a kind that the door does not serve', async () => {
  await assert.rejects(openai().images.generate({ model: chatModel, prompt }), (e) => {
    assert.equal(e.status, 400);
    assert.match(e.message, /has kind "llm"; this endpoint serves only image models/);
    return true;
  });
});

// Cohere's own path for rerankings is another name of the door.
const cohere = (baseUrl) => new CohereClient({ token: key, baseUrl, environment: baseUrl, maxRetries: 0 });
const documents = ['one', 'hello world', 'three'];

for (const [name, baseUrl, model] of [
  ['the door', url, rerankModel],
  ['the provider proxy', `${url}/cohere`, rerankModel.split('/')[1]],
]) {
  test(`cohere-ai: rerank through ${name}`, async () => {
    const result = await cohere(baseUrl).v2.rerank({ model, query: prompt, documents, topN: 2 });
    assert.equal(result.results.length, 2);
    assert.equal(result.results[0].index, 1);
    assert.equal(result.meta.billedUnits.searchUnits, 1);
  });
}

test('cohere-ai: errors', async () => {
  await assert.rejects(cohere(url).v2.rerank({ model: 'nobody/nothing', query: prompt, documents }), (e) => {
    assert.equal(e.statusCode, 404);
    assert.equal(e.body.error.type, 'not_found');
    return true;
  });
});

// Gemini's own format goes through the provider proxy, models by their native
// names.
const gemini = (apiKey = key) => new GoogleGenAI({ apiKey, httpOptions: { baseUrl: `${url}/gemini` } });
const geminiModel = 'gemini-2.5-flash';

test('@google/genai: generate', async () => {
  const result = await gemini().models.generateContent({ model: geminiModel, contents: prompt });
  assert.equal(result.text, answer);
  assert.equal(result.usageMetadata.promptTokenCount, spent.input);
  assert.equal(result.usageMetadata.candidatesTokenCount, spent.output);
});

test('@google/genai: stream', async () => {
  let text = '';
  let usage;
  for await (const chunk of await gemini().models.generateContentStream({ model: geminiModel, contents: prompt })) {
    text += chunk.text ?? '';
    usage = chunk.usageMetadata ?? usage;
  }
  assert.equal(text, answer);
  assert.equal(usage.totalTokenCount, spent.total);
});

test('@google/genai: count tokens', async () => {
  const counted = await gemini().models.countTokens({ model: geminiModel, contents: prompt });
  assert.equal(counted.totalTokens, spent.input);
});

test('@google/genai: errors', async () => {
  await assert.rejects(gemini(`${key.slice(0, -1)}x`).models.generateContent({ model: geminiModel, contents: prompt }), (e) => {
    assert.equal(e.status, 401);
    assert.match(e.message, /invalid gateway key/);
    return true;
  });
});

const langchain = (fields) => new ChatOpenAI({ model: chatModel, apiKey: key, maxRetries: 0, configuration: { baseURL: `${url}/v1` }, ...fields });

test('langchain: invoke', async () => {
  const result = await langchain().invoke(prompt);
  assert.equal(result.content, answer);
  assert.equal(result.usage_metadata.input_tokens, spent.input);
});

test('langchain: stream', async () => {
  let text = '';
  for await (const chunk of await langchain().stream(prompt)) text += chunk.content;
  assert.equal(text, answer);
});

test('langchain: embeddings', async () => {
  const embeddings = new OpenAIEmbeddings({ model: embeddingModel, apiKey: key, maxRetries: 0, configuration: { baseURL: `${url}/v1` } });
  const vectors = await embeddings.embedDocuments(['one two', 'three']);
  assert.equal(vectors.length, 2);
});

// The SDK adds response_format to calls of models it does not know, and the
// provider refuses that. It knows the native name, on the provider proxy.
test('ai: image through the provider proxy', async () => {
  const native = createOpenAI({ apiKey: key, baseURL: `${url}/openai/v1` });
  const { images } = await generateImage({ model: native.image(imageModel.split('/')[1]), prompt, maxRetries: 0 });
  assert.equal(images.length, 1);
});

test("ai: image through the door shows the provider's refusal", async () => {
  await assert.rejects(generateImage({ model: aiOpenAI.image(imageModel), prompt, maxRetries: 0 }), (e) => {
    assert.equal(e.statusCode, 400);
    assert.match(e.message, /response_format/);
    return true;
  });
});

test('ai: speech and transcription', async () => {
  const { audio } = await generateSpeech({ model: aiOpenAI.speech(speechModel), text: prompt, maxRetries: 0 });
  assert.ok(audio.uint8Array.length > 100);
  const { text } = await transcribe({ model: aiOpenAI.transcription(transcriptionModel), audio: audio.uint8Array, maxRetries: 0 });
  assert.ok(text.length > 0);
});
