package main

import (
	"bytes"
	"fmt"
	"strings"
)

// api is whose format a call has.
type api int

const (
	apiChat api = iota
	apiResponses
	apiMessages
)

// apiPaths are the paths of the APIs.
var apiPaths = [...]string{apiChat: "/v1/chat/completions", apiResponses: "/v1/responses", apiMessages: "/v1/messages"}

// apiAt is the API at the path in a request's first line.
func apiAt(line []byte) api {
	for a := apiResponses; a <= apiMessages; a++ {
		if bytes.Contains(line, []byte(apiPaths[a]+" ")) {
			return a
		}
	}
	return apiChat
}

// header are the lines that every call of the API has in its header.
func (a api) header() string {
	if a == apiMessages {
		return "Anthropic-Version: 2023-06-01\r\n"
	}
	return ""
}

// body is the body of a call of the scenario, with a name of its model.
func (s *scenario) body(model string) string {
	stream := ""
	if s.stream() {
		stream = `"stream":true,"stream_options":{"include_usage":true},`
	}
	if s.Prompt == promptGreeting {
		return s.greeting(model)
	}
	return fmt.Sprintf(`{"model":%q,%s%s}`, model, stream, s.messages())
}

// greeting is the body of ENTERPILOT's calls: it says in any case whether it
// wants a stream, and never that it wants usage.
func (s *scenario) greeting(model string) string {
	const text = "Say hello for a benchmark test."
	switch s.API {
	case apiResponses:
		return fmt.Sprintf(`{"input":%q,"model":%q,"stream":%t}`, text, model, s.stream())
	case apiMessages:
		return fmt.Sprintf(`{"max_tokens":256,"messages":[{"content":%q,"role":"user"}],"model":%q,"stream":%t}`, text, model, s.stream())
	}
	return fmt.Sprintf(`{"messages":[{"content":%q,"role":"user"}],"model":%q,"stream":%t}`, text, model, s.stream())
}

// enterpilot are the six loads of ENTERPILOT's public benchmark of gateways: ten
// connections, short questions, and answers of the size that its provider gives,
// streams with one write for each event.
func enterpilot() []scenario {
	var out []scenario
	for a, name := range [...]string{apiChat: "chat", apiResponses: "responses", apiMessages: "messages"} {
		sc := scenario{Name: "ENTERPILOT, " + name + ", c=10", Connections: 10, Model: modelShort, Prompt: promptGreeting, API: api(a), Rare: api(a) != apiChat}
		stream := sc
		stream.Name, stream.Model = "ENTERPILOT, "+name+" stream, c=10", modelShortStream
		out = append(out, sc, stream)
	}
	return out
}

// shortStream is the short answer as a stream of chat completions. Its last
// chunk has the usage, whether or not a call asks for it.
func shortStream(words []string) [][]byte {
	chunk := func(delta, reason, usage string) string {
		return fmt.Sprintf(`data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1790000000,"model":"sim-short","choices":[{"index":0,"delta":%s,"finish_reason":%s}]%s}`+"\n\n", delta, reason, usage)
	}
	events := []string{chunk(`{"role":"assistant","content":""}`, "null", "")}
	for _, word := range words {
		events = append(events, chunk(fmt.Sprintf(`{"content":%q}`, word), "null", ""))
	}
	return cannedEvents(append(events, chunk("{}", `"stop"`, `,"usage":{"prompt_tokens":25,"completion_tokens":35,"total_tokens":60}`), "data: [DONE]\n\n"))
}

// The provider's short answer as the other APIs have it.

func responsesAnswer(text string) []byte { return cannedJSON(responseObject("completed", text)) }

func responseObject(status, text string) string {
	output, usage := "", "null"
	if text != "" {
		output = fmt.Sprintf(`{"type":"message","id":"msg_bench","status":"completed","role":"assistant","content":[{"type":"output_text","text":%q,"annotations":[]}]}`, text)
		usage = `{"input_tokens":25,"output_tokens":35,"total_tokens":60}`
	}
	return fmt.Sprintf(`{"id":"resp_bench","object":"response","created_at":1790000000,"model":"sim-short","status":%q,"output":[%s],"usage":%s}`, status, output, usage)
}

func responsesStream(words []string) [][]byte {
	events := []string{
		named("response.created", `"response":`+responseObject("in_progress", "")),
		named("response.output_item.added", `"output_index":0,"item":{"type":"message","id":"msg_bench","status":"in_progress","role":"assistant","content":[]}`),
		named("response.content_part.added", `"item_id":"msg_bench","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}`),
	}
	for _, word := range words {
		events = append(events, named("response.output_text.delta", fmt.Sprintf(`"item_id":"msg_bench","output_index":0,"content_index":0,"delta":%q`, word)))
	}
	text := strings.Join(words, "")
	return cannedEvents(append(events,
		named("response.output_text.done", fmt.Sprintf(`"item_id":"msg_bench","output_index":0,"content_index":0,"text":%q`, text)),
		named("response.completed", `"response":`+responseObject("completed", text))))
}

func messagesAnswer(text string) []byte {
	return cannedJSON(fmt.Sprintf(`{"id":"msg_bench","type":"message","role":"assistant","model":"sim-short","content":[{"type":"text","text":%q}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":25,"output_tokens":35}}`, text))
}

func messagesStream(words []string) [][]byte {
	events := []string{
		named("message_start", `"message":{"id":"msg_bench","type":"message","role":"assistant","model":"sim-short","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":25,"output_tokens":1}}`),
		named("content_block_start", `"index":0,"content_block":{"type":"text","text":""}`),
	}
	for _, word := range words {
		events = append(events, named("content_block_delta", fmt.Sprintf(`"index":0,"delta":{"type":"text_delta","text":%q}`, word)))
	}
	return cannedEvents(append(events,
		named("content_block_stop", `"index":0`),
		named("message_delta", `"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":35}`),
		named("message_stop", "")))
}

// named is an event with a name, which its data have as their type.
func named(name, members string) string {
	if members != "" {
		members = "," + members
	}
	return fmt.Sprintf("event: %s\ndata: {\"type\":%q%s}\n\n", name, name, members)
}
