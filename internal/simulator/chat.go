package simulator

import (
	"encoding/json"
	"net/http"
	"strings"
)

type chatUsage struct {
	PromptTokens     int64 `json:"prompt_tokens"`
	CompletionTokens int64 `json:"completion_tokens"`
	TotalTokens      int64 `json:"total_tokens"`
	PromptDetails    struct {
		Cached     int64 `json:"cached_tokens"`
		CacheWrite int64 `json:"cache_write_tokens"`
		Audio      int64 `json:"audio_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning          int64 `json:"reasoning_tokens"`
		Audio              int64 `json:"audio_tokens"`
		AcceptedPrediction int64 `json:"accepted_prediction_tokens"`
		RejectedPrediction int64 `json:"rejected_prediction_tokens"`
	} `json:"completion_tokens_details"`
}

func newChatUsage(t tokens) chatUsage {
	u := chatUsage{PromptTokens: t.prompt(), CompletionTokens: t.output, TotalTokens: t.total()}
	u.PromptDetails.Cached, u.PromptDetails.CacheWrite = t.cached, t.cacheWrite
	u.CompletionDetails.Reasoning = t.reasoning
	return u
}

type chatMessage struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
	Refusal *string `json:"refusal"`
}

type chatDelta struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
}

type chatChoice struct {
	Index        int          `json:"index"`
	Message      *chatMessage `json:"message,omitempty"`
	Delta        *chatDelta   `json:"delta,omitempty"`
	Logprobs     *struct{}    `json:"logprobs"`
	FinishReason *string      `json:"finish_reason"`
}

// chatReply is both the completion and the chunk.
type chatReply struct {
	ID          string          `json:"id"`
	Object      string          `json:"object"`
	Created     int64           `json:"created"`
	Model       string          `json:"model"`
	Choices     []chatChoice    `json:"choices"`
	Usage       json.RawMessage `json:"usage,omitempty"`
	ServiceTier string          `json:"service_tier,omitempty"`
	Fingerprint string          `json:"system_fingerprint"`
}

// maxChoices is the largest n OpenAI takes.
const maxChoices = 128

func (p *Provider) chat(c *call) answer {
	if len(c.fields.list("messages")) == 0 {
		return c.fail(http.StatusBadRequest, "Missing required parameter: 'messages'.")
	}
	if c.fields.text("model") == "" {
		return c.fail(http.StatusBadRequest, "you must provide a model parameter")
	}
	limit := int(c.fields.number("max_completion_tokens"))
	if limit == 0 {
		limit = int(c.fields.number("max_tokens"))
	}
	words, cut := c.answerWords(limit)
	finish := "stop"
	if cut {
		finish = "length"
	}
	n := c.fields.count("n", maxChoices)
	if n*len(words) > maxWords {
		return c.fail(http.StatusBadRequest, "the choices together have too many words")
	}
	usage := newChatUsage(c.count(int64(n * len(words))))
	reply := chatReply{
		ID: p.id(c, "chatcmpl-"), Object: "chat.completion", Created: p.opts.Now().Unix(),
		Model: c.served.Model, ServiceTier: c.tier(), Fingerprint: "fp_simulated",
	}
	if c.fields.flag("stream") {
		return c.chatStream(reply, usage, chatText{c.pieces(words), finish, n})
	}
	text := strings.Join(words, " ")
	for i := range n {
		reply.Choices = append(reply.Choices, chatChoice{Index: i, FinishReason: &finish, Message: &chatMessage{Role: "assistant", Content: &text}})
	}
	reply.Usage = c.usageJSON(usage)
	return jsonAnswer(reply).withUsage(c)
}

// chatText is what every choice of a stream says.
type chatText struct {
	pieces []string
	finish string
	n      int
}

// chatStream is the stream of a completion: a chunk with the role, one for
// each piece, one with the reason, each for every choice; usage in a chunk of
// its own when asked for, then the end.
func (c *call) chatStream(reply chatReply, usage chatUsage, text chatText) answer {
	a := answer{kind: eventStream, fault: dataFrame(c.fault(http.StatusInternalServerError, "The simulator was told to fail here."))}
	reply.Object = "chat.completion.chunk"
	included := c.fields.object("stream_options").flag("include_usage")
	if included && !c.d.noUsage {
		reply.Usage = json.RawMessage("null")
	}
	chunk := func(delta chatDelta, finish *string) {
		for i := range text.n {
			reply.Choices = []chatChoice{{Index: i, Delta: &delta, FinishReason: finish}}
			a.frames = append(a.frames, dataFrame(reply))
		}
	}
	none := ""
	chunk(chatDelta{Role: "assistant", Content: &none}, nil)
	for _, piece := range text.pieces {
		chunk(chatDelta{Content: &piece}, nil)
	}
	chunk(chatDelta{}, &text.finish)
	if included && !c.d.noUsage {
		reply.Choices, reply.Usage = []chatChoice{}, c.usageJSON(usage)
		a.frames = append(a.frames, dataFrame(reply))
		if !c.d.usageNull {
			a.usage = len(a.frames)
		}
	}
	a.frames = append(a.frames, []byte("data: [DONE]\n\n"))
	return a
}

func (p *Provider) completions(c *call) answer {
	limit := int(c.fields.number("max_tokens"))
	words, cut := c.answerWords(limit)
	finish := "stop"
	if cut {
		finish = "length"
	}
	n := c.fields.count("n", maxChoices)
	if n*len(words) > maxWords {
		return c.fail(http.StatusBadRequest, "the choices together have too many words")
	}
	usage := newChatUsage(c.count(int64(n * len(words))))
	type choice struct {
		Text         string    `json:"text"`
		Index        int       `json:"index"`
		Logprobs     *struct{} `json:"logprobs"`
		FinishReason *string   `json:"finish_reason"`
	}
	reply := struct {
		ID      string          `json:"id"`
		Object  string          `json:"object"`
		Created int64           `json:"created"`
		Model   string          `json:"model"`
		Choices []choice        `json:"choices"`
		Usage   json.RawMessage `json:"usage,omitempty"`
	}{ID: p.id(c, "cmpl-"), Object: "text_completion", Created: p.opts.Now().Unix(), Model: c.served.Model}
	if !c.fields.flag("stream") {
		for i := range n {
			reply.Choices = append(reply.Choices, choice{Text: strings.Join(words, " "), Index: i, FinishReason: &finish})
		}
		reply.Usage = c.usageJSON(usage)
		return jsonAnswer(reply).withUsage(c)
	}
	a := answer{kind: eventStream, fault: dataFrame(c.fault(http.StatusInternalServerError, "The simulator was told to fail here."))}
	pieces := append(c.pieces(words), "")
	for at, piece := range pieces {
		for i := range n {
			reply.Choices = []choice{{Text: piece, Index: i}}
			if at == len(pieces)-1 {
				reply.Choices[0].FinishReason = &finish
			}
			a.frames = append(a.frames, dataFrame(reply))
		}
	}
	if c.fields.object("stream_options").flag("include_usage") && !c.d.noUsage {
		reply.Choices, reply.Usage = []choice{}, c.usageJSON(usage)
		a.frames = append(a.frames, dataFrame(reply))
		if !c.d.usageNull {
			a.usage = len(a.frames)
		}
	}
	a.frames = append(a.frames, []byte("data: [DONE]\n\n"))
	return a
}
