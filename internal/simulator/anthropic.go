package simulator

import (
	"encoding/json"
	"net/http"
	"strings"
)

type messageUsage struct {
	InputTokens   int64 `json:"input_tokens"`
	CacheCreation int64 `json:"cache_creation_input_tokens"`
	CacheRead     int64 `json:"cache_read_input_tokens"`
	CacheSplit    struct {
		FiveMinutes int64 `json:"ephemeral_5m_input_tokens"`
		OneHour     int64 `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
	OutputTokens  int64          `json:"output_tokens"`
	OutputDetails *outputDetails `json:"output_tokens_details,omitempty"`
	ServiceTier   string         `json:"service_tier"`
}

type outputDetails struct {
	Thinking int64 `json:"thinking_tokens"`
}

type messageText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type messageReply struct {
	ID           string          `json:"id"`
	Type         string          `json:"type"`
	Role         string          `json:"role"`
	Model        string          `json:"model"`
	Content      []messageText   `json:"content"`
	StopReason   *string         `json:"stop_reason"`
	StopSequence *string         `json:"stop_sequence"`
	Usage        json.RawMessage `json:"usage,omitempty"`
}

func (p *Provider) messages(c *call) answer {
	limit := int(c.fields.number("max_tokens"))
	if limit < 1 {
		return c.fail(http.StatusBadRequest, "max_tokens: Field required")
	}
	if len(c.fields.list("messages")) == 0 {
		return c.fail(http.StatusBadRequest, "messages: Field required")
	}
	words, cut := c.answerWords(limit)
	stop := "end_turn"
	if cut {
		stop = "max_tokens"
	}
	t := c.count(int64(len(words)))
	usage := messageUsage{InputTokens: t.input, CacheRead: t.cached, CacheCreation: t.cacheWrite + t.cacheWrite1h, OutputTokens: t.output, ServiceTier: "standard"}
	usage.CacheSplit.FiveMinutes, usage.CacheSplit.OneHour = t.cacheWrite, t.cacheWrite1h
	if c.d.tier != "" {
		usage.ServiceTier = c.d.tier
	}
	if t.reasoning > 0 {
		usage.OutputDetails = &outputDetails{t.reasoning}
	}
	reply := messageReply{ID: p.id(c, "msg_"), Type: "message", Role: "assistant", Model: c.served.Model, Content: []messageText{}}
	if c.fields.flag("stream") {
		return c.messageStream(reply, usage, stop, c.pieces(words))
	}
	reply.Content, reply.StopReason, reply.Usage = []messageText{{"text", strings.Join(words, " ")}}, &stop, c.usageJSON(usage)
	return jsonAnswer(reply).withUsage(c)
}

func (c *call) messageStream(reply messageReply, usage messageUsage, stop string, pieces []string) answer {
	a := answer{kind: eventStream, fault: eventFrame("error", c.fault(529, "The simulator was told to fail here."))}
	emit := func(name string, o object) {
		o["type"] = name
		a.frames = append(a.frames, eventFrame(name, o))
	}
	first := usage
	first.OutputTokens, first.OutputDetails = 1, nil
	reply.Usage = c.usageJSON(first)
	emit("message_start", object{"message": reply})
	emit("content_block_start", object{"index": 0, "content_block": messageText{Type: "text"}})
	emit("ping", object{})
	for _, piece := range pieces {
		emit("content_block_delta", object{"index": 0, "delta": messageText{"text_delta", piece}})
	}
	emit("content_block_stop", object{"index": 0})
	last := object{"delta": object{"stop_reason": stop, "stop_sequence": nil}}
	cumulative := object{
		"input_tokens": usage.InputTokens, "cache_creation_input_tokens": usage.CacheCreation,
		"cache_read_input_tokens": usage.CacheRead, "output_tokens": usage.OutputTokens,
	}
	if usage.OutputDetails != nil {
		cumulative["output_tokens_details"] = usage.OutputDetails
	}
	if u := c.usageJSON(cumulative); u != nil {
		last["usage"] = u
	}
	emit("message_delta", last)
	if !c.d.noUsage && !c.d.usageNull {
		a.usage = len(a.frames)
	}
	emit("message_stop", object{})
	return a
}

func (p *Provider) countTokens(c *call) answer {
	t := c.plain(c.prompt.words(), 0)
	return jsonAnswer(object{"input_tokens": t.input}).withUsage(c)
}
