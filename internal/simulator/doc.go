// Package simulator is a set of model providers that exist only in this
// process: it speaks the wire formats of OpenAI, Anthropic, Gemini, Amazon
// Bedrock, the rerank services, DashScope and Ark closely enough for their official SDKs.
//
// `modelgate dev` uses it so that the product can be tried without any
// provider account; tests and benchmarks use it as the upstream whose own
// ledger says what was really served.
//
// A handler makes one description of its answer (completion, job) and writes it
// in the format of its path, whole or as a stream; send then applies the
// directives about delays, cuts and faults, and records what was sent.
//
// A request that offers tools is answered with a call of one where its last turn
// is the user's and names a tool that it offers: by [[tool=NAME]], or by mentioning
// the name as a word. The arguments are the least that the tool's schema accepts,
// with the members that [[arguments={…}]] gives. The result that comes back is
// answered with text that repeats it. See callTool for the whole rule.
//
// An answer depends on the request alone, except for timestamps, request ids and
// the ids of jobs. It can be billed by hand:
//
//   - Input tokens are the words (separated by white space) of all text in the
//     request: messages, system text, instructions, prompt, query, documents.
//     Directives are taken out first. A token array counts its elements.
//     What a tool returned is such text; what it is called with is none.
//   - Output tokens are the words of the answer, for each choice. A call of a
//     tool is one for its name and the words of its arguments as JSON.
//   - Cached, cache-write and reasoning tokens are zero unless a directive asks
//     for them; they come on top of the words, and each provider's format adds
//     them to its totals or keeps them apart as the real one does.
//   - An image costs 100 output tokens, an image sent along 100 input tokens,
//     a partial image 100 output tokens more.
//   - Characters spoken are the code points of the input as it was sent,
//     directives and all.
//   - Speech lasts 0.4 s a word. A transcription lasts 1 s for each 32,000
//     bytes of the file, at least 1 s, and an audio token is a tenth of a second.
//   - A rerank is one search unit for each 100 documents begun.
//   - A video of Ark costs 1,000 tokens a second.
package simulator
