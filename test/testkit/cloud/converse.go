package cloud

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/tidwall/gjson"
)

// object is a JSON object.
type object = map[string]any

// message asks the simulated provider as Anthropic's API would be.
func (b *Bedrock) message(r *http.Request, body object) *httptest.ResponseRecorder {
	text, _ := json.Marshal(body)
	req := httptest.NewRequest(http.MethodPost, "/v1/messages", bytes.NewReader(text))
	req.Header = r.Header.Clone()
	req.Header.Set("Anthropic-Version", "2023-06-01")
	w := httptest.NewRecorder()
	b.model.ServeHTTP(w, req.WithContext(r.Context()))
	return w
}

// operate answers /model/{model}/{operation}.
func (b *Bedrock) operate(w http.ResponseWriter, r *http.Request, model, operation string, text []byte) {
	var body object
	if err := json.Unmarshal(text, &body); err != nil {
		http.Error(w, "{}", http.StatusBadRequest)
		return
	}
	stream := strings.HasSuffix(operation, "stream")
	invoke := strings.HasPrefix(operation, "invoke")
	if !invoke {
		body = fromConverse(gjson.ParseBytes(text))
	}
	body["model"] = model
	if invoke && stream {
		body["stream"] = true
	}
	answer := b.message(r, body)
	if answer.Code != http.StatusOK || invoke && !stream {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
		return
	}
	var frames [][]byte
	switch reply := gjson.ParseBytes(answer.Body.Bytes()); {
	case invoke:
		for line := range strings.Lines(answer.Body.String()) {
			if data, ok := strings.CutPrefix(line, "data:"); ok {
				frames = append(frames, Chunk(strings.TrimSpace(data)))
			}
		}
	case stream:
		frames = converseEvents(reply)
	default:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(object{
			"output":     object{"message": object{"role": "assistant", "content": converseContent(reply)}},
			"stopReason": reply.Get("stop_reason").Str, "usage": converseUsage(reply), "metrics": object{"latencyMs": 5},
		})
		return
	}
	w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
	for _, f := range frames {
		_, _ = w.Write(f)
		_ = http.NewResponseController(w).Flush()
	}
}

// fromConverse is a request to Converse in the words of Anthropic's API.
func fromConverse(c gjson.Result) object {
	var messages, tools []any
	for _, m := range c.Get("messages").Array() {
		var content []any
		for _, block := range m.Get("content").Array() {
			switch use, result := block.Get("toolUse"), block.Get("toolResult"); {
			case use.Exists():
				content = append(content, object{"type": "tool_use", "id": use.Get("toolUseId").Str, "name": use.Get("name").Str, "input": use.Get("input").Value()})
			case result.Exists():
				first := result.Get("content.0")
				text := first.Get("text").Str
				if text == "" {
					text = first.Get("json").Raw
				}
				content = append(content, object{"type": "tool_result", "tool_use_id": result.Get("toolUseId").Str, "content": text})
			default:
				content = append(content, object{"type": "text", "text": block.Get("text").Str})
			}
		}
		messages = append(messages, object{"role": m.Get("role").Str, "content": content})
	}
	for _, tool := range c.Get("toolConfig.tools.#.toolSpec").Array() {
		tools = append(tools, object{"name": tool.Get("name").Str, "description": tool.Get("description").Str, "input_schema": tool.Get("inputSchema.json").Value()})
	}
	body := object{"max_tokens": 100, "messages": messages}
	if len(tools) > 0 {
		body["tools"] = tools
	}
	return body
}

func converseContent(reply gjson.Result) (content []any) {
	for _, block := range reply.Get("content").Array() {
		if block.Get("type").Str == "tool_use" {
			content = append(content, object{"toolUse": object{"toolUseId": block.Get("id").Str, "name": block.Get("name").Str, "input": block.Get("input").Value()}})
		} else {
			content = append(content, object{"text": block.Get("text").Str})
		}
	}
	return content
}

func converseUsage(reply gjson.Result) object {
	in, out := reply.Get("usage.input_tokens").Int(), reply.Get("usage.output_tokens").Int()
	return object{"inputTokens": in, "outputTokens": out, "totalTokens": in + out,
		"cacheReadInputTokens": reply.Get("usage.cache_read_input_tokens").Int(), "cacheWriteInputTokens": reply.Get("usage.cache_creation_input_tokens").Int()}
}

// converseEvents are the messages of a stream that says what a reply does.
func converseEvents(reply gjson.Result) (frames [][]byte) {
	add := func(name string, payload object) {
		text, _ := json.Marshal(payload)
		frames = append(frames, Event(name, string(text)))
	}
	add("messageStart", object{"role": "assistant"})
	for i, block := range reply.Get("content").Array() {
		if block.Get("type").Str == "tool_use" {
			add("contentBlockStart", object{"contentBlockIndex": i, "start": object{"toolUse": object{"toolUseId": block.Get("id").Str, "name": block.Get("name").Str}}})
			add("contentBlockDelta", object{"contentBlockIndex": i, "delta": object{"toolUse": object{"input": block.Get("input").Raw}}})
		} else {
			for word := range strings.SplitAfterSeq(block.Get("text").Str, " ") {
				add("contentBlockDelta", object{"contentBlockIndex": i, "delta": object{"text": word}})
			}
		}
		add("contentBlockStop", object{"contentBlockIndex": i})
	}
	add("messageStop", object{"stopReason": reply.Get("stop_reason").Str})
	add("metadata", object{"usage": converseUsage(reply), "metrics": object{"latencyMs": 5}})
	return frames
}
