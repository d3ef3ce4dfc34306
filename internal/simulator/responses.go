package simulator

import (
	"encoding/json"
	"net/http"
	"strings"
)

type object = map[string]any

type responseUsage struct {
	InputTokens  int64 `json:"input_tokens"`
	InputDetails struct {
		Cached     int64 `json:"cached_tokens"`
		CacheWrite int64 `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
	OutputTokens  int64 `json:"output_tokens"`
	OutputDetails struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
	TotalTokens int64 `json:"total_tokens"`
}

// responseReply is the Response object; absent usage is null while it runs.
type responseReply struct {
	ID                string          `json:"id"`
	Object            string          `json:"object"`
	CreatedAt         int64           `json:"created_at"`
	Status            string          `json:"status"`
	Error             *struct{}       `json:"error"`
	IncompleteDetails any             `json:"incomplete_details"`
	Instructions      any             `json:"instructions"`
	Model             string          `json:"model"`
	Output            []any           `json:"output"`
	ParallelToolCalls bool            `json:"parallel_tool_calls"`
	ToolChoice        string          `json:"tool_choice"`
	Tools             []any           `json:"tools"`
	ServiceTier       string          `json:"service_tier"`
	Metadata          object          `json:"metadata"`
	Usage             json.RawMessage `json:"usage,omitempty"`
}

func (p *Provider) responses(c *call) answer {
	if c.fields["input"] == nil {
		return c.fail(http.StatusBadRequest, "Missing required parameter: 'input'.")
	}
	words, cut := c.answerWords(int(c.fields.number("max_output_tokens")))
	t := c.count(int64(len(words)))
	u := responseUsage{InputTokens: t.prompt(), OutputTokens: t.output, TotalTokens: t.total()}
	u.InputDetails.Cached, u.InputDetails.CacheWrite, u.OutputDetails.Reasoning = t.cached, t.cacheWrite, t.reasoning
	open := responseReply{
		ID: p.id(c, "resp_"), Object: "response", CreatedAt: p.opts.Now().Unix(), Status: "in_progress", Model: c.served.Model,
		Instructions: c.fields["instructions"], Output: []any{}, ParallelToolCalls: true, ToolChoice: "auto", Tools: []any{},
		ServiceTier: c.tier(), Metadata: object{}, Usage: json.RawMessage("null"),
	}
	done := open
	done.Status, done.Usage = "completed", c.usageJSON(u)
	if cut {
		done.Status, done.IncompleteDetails = "incomplete", object{"reason": "max_output_tokens"}
	}
	item := responseItem{id: p.id(c, "msg_"), text: strings.Join(words, " ")}
	done.Output = []any{item.object("completed")}
	if !c.fields.flag("stream") {
		return jsonAnswer(done).withUsage(c)
	}
	return c.responseStream(open, done, item, c.pieces(words))
}

// responseItem is the one message of a response.
type responseItem struct{ id, text string }

func (i responseItem) object(status string) object {
	content := []any{}
	if status == "completed" {
		content = append(content, i.part(i.text))
	}
	return object{"id": i.id, "type": "message", "status": status, "role": "assistant", "content": content}
}

func (i responseItem) part(text string) object {
	return object{"type": "output_text", "text": text, "annotations": []any{}, "logprobs": []any{}}
}

func (c *call) responseStream(open, done responseReply, item responseItem, pieces []string) answer {
	a := answer{kind: eventStream}
	at := func(o object) object {
		o["item_id"], o["output_index"], o["content_index"] = item.id, 0, 0
		return o
	}
	emit := func(name string, o object) {
		o["type"], o["sequence_number"] = name, len(a.frames)
		a.frames = append(a.frames, eventFrame(name, o))
	}
	emit("response.created", object{"response": open})
	emit("response.in_progress", object{"response": open})
	emit("response.output_item.added", object{"output_index": 0, "item": item.object("in_progress")})
	emit("response.content_part.added", at(object{"part": item.part("")}))
	for _, piece := range pieces {
		emit("response.output_text.delta", at(object{"delta": piece, "logprobs": []any{}}))
	}
	emit("response.output_text.done", at(object{"text": item.text, "logprobs": []any{}}))
	emit("response.content_part.done", at(object{"part": item.part(item.text)}))
	emit("response.output_item.done", object{"output_index": 0, "item": item.object("completed")})
	emit("response."+done.Status, object{"response": done})
	if !c.d.noUsage && !c.d.usageNull {
		a.usage = len(a.frames)
	}
	a.fault = eventFrame("error", object{
		"type": "error", "code": "server_error", "message": "The simulator was told to fail here.", "param": nil, "sequence_number": len(a.frames),
	})
	return a
}
