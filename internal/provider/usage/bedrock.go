package usage

import (
	"net/http"

	"github.com/tidwall/gjson"
)

// Readers of Amazon Bedrock's own operations.
var (
	// Converse reads converse and converse-stream, whose metadata is the last
	// message of a stream. The input leaves out what was read from a cache or
	// written to it.
	Converse = &Reader{name: "converse", members: quoted("usage"), whole: quoted("usage", "serviceTier", "performanceConfig"), read: converse,
		ends: []string{"metadata"}, head: bedrockTier}
	// Invoke reads invoke and invoke-with-response-stream: the model's own body, by
	// its shape, else the counts of the header, or of the last message.
	Invoke = &Reader{name: "invoke", members: quoted("usage", invocationMetrics), read: invoke, anyText: true, repeats: "message",
		whole: append(chatFigures(), quoted("message", "metadata", "results", invocationMetrics)...),
		ends:  []string{"message_stop"}, head: invokeCounts}
)

// invocationMetrics is what Bedrock adds to the last event of a stream.
const invocationMetrics = "amazon-bedrock-invocationMetrics"

func converse(r *reading, doc *document) {
	if r.bedrockUsage(doc.get("usage")) {
		word(&r.usage.ServiceTier, doc.get("serviceTier.type"))
		if text(doc.get("performanceConfig.latency")) == optimized {
			r.usage.Speed = optimized
		}
	}
}

// bedrockUsage reads a usage object in Bedrock's words, and reports whether it is
// one.
func (r *reading) bedrockUsage(usage gjson.Result) bool {
	u := &r.usage
	for name, v := range members(usage) {
		switch name {
		case "inputTokens", "inputTokenCount":
			r.state(&u.Input, v)
		case "outputTokens", "outputTokenCount":
			r.state(&u.Output, v)
		case "cacheReadInputTokens", "cacheReadInputTokenCount":
			r.set(&u.CachedInput, v)
		case "cacheWriteInputTokens", "cacheWriteInputTokenCount":
			r.set(&r.written, v)
		case "cacheDetails":
			r.cacheDetails(v)
		}
	}
	r.splitWritten()
	return usage.IsObject()
}

// cacheDetails reads the cache writes by their life. The parts win over a smaller
// sum.
func (r *reading) cacheDetails(list gjson.Result) {
	var hour, all int64
	for _, v := range members(list) {
		var n int64
		if !r.set(&n, v.Get("inputTokens")) {
			continue
		}
		if all += n; text(v.Get("ttl")) == "1h" {
			hour += n
		}
	}
	r.written1h, r.written = hour, max(r.written, all)
}

// splitWritten divides the cache writes by their life.
func (r *reading) splitWritten() {
	r.usage.CacheWrite1h = min(r.written1h, r.written)
	r.usage.CacheWrite = r.written - r.usage.CacheWrite1h
}

func invoke(r *reading, doc *document) {
	usage, nested := doc.get("usage"), doc.get("metadata.usage")
	switch {
	case usage.Get("inputTokens").Exists():
		r.bedrockUsage(usage)
	case nested.IsObject():
		r.bedrockUsage(nested)
	case usage.Get("prompt_tokens").Exists():
		chat(nil)(r, doc)
	case usage.IsObject(), doc.get("message.usage").IsObject():
		messages(r, doc)
	}
	if metrics := doc.get(invocationMetrics); metrics.IsObject() {
		if !r.read {
			r.bedrockUsage(metrics)
		}
		r.final, r.ended = true, true
	}
	if !r.read {
		r.flatCounts(doc)
	}
}

// flatCounts reads the counts of models that state them among the members of the
// body: Titan and Llama.
func (r *reading) flatCounts(doc *document) {
	r.state(&r.usage.Input, doc.get("inputTextTokenCount"))
	for _, v := range members(doc.get("results")) {
		var n int64
		r.state(&n, v.Get("tokenCount"))
		r.usage.Output += n
	}
	r.state(&r.usage.Input, doc.get("prompt_token_count"))
	r.state(&r.usage.Output, doc.get("generation_token_count"))
}

// optimized is the latency that has a price of its own.
const optimized = "optimized"

// bedrockTier reads what the header says of how a call was served, where the body
// does not.
func bedrockTier(r *reading, h http.Header, _ bool) {
	if r.usage.ServiceTier == "" {
		word(&r.usage.ServiceTier, gjson.Result{Str: h.Get("X-Amzn-Bedrock-Service-Tier")})
	}
	if h.Get("X-Amzn-Bedrock-Performanceconfig-Latency") == optimized {
		r.usage.Speed = optimized
	}
}

// invokeCounts reads the counts of the header for a body that states none.
func invokeCounts(r *reading, h http.Header, whole bool) {
	bedrockTier(r, h, whole)
	if r.read || !whole {
		return
	}
	count := func(name string) gjson.Result {
		text := h.Get("X-Amzn-Bedrock-" + name + "-Token-Count")
		if text == "" {
			return gjson.Result{}
		}
		return gjson.Result{Type: gjson.String, Str: text}
	}
	r.state(&r.usage.Input, count("Input"))
	r.state(&r.usage.Output, count("Output"))
	r.set(&r.usage.CachedInput, count("Cache-Read-Input"))
	r.set(&r.written, count("Cache-Write-Input"))
	r.splitWritten()
}
