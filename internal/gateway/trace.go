package gateway

import (
	"log/slog"
	"strconv"
	"time"

	"modelgate"
	"modelgate/internal/tracing"
)

// Tracing says which calls are traced and takes their spans.
type Tracing struct {
	Sampler tracing.Sampler
	Add     func(tracing.Span)
}

// trace makes the spans of a call whose books are closed: the request that
// the gateway answered, and below it the one it made of the provider, with the
// attributes of OpenTelemetry's conventions for generative AI. At level debug
// the call is a line of the log too.
func (g *Gateway) trace(c *call, end *modelgate.CallEnd) {
	if g.Log.Enabled(c.r.Context(), slog.LevelDebug) {
		g.Log.Debug("call", "request_id", c.id.String(), "surface", c.surface, "provider", c.attempts[c.tried].name, "model", c.attempts[c.tried].model,
			"client_id", c.caller.ClientID, "key_id", c.caller.KeyID, "status", end.StatusCode, "latency_ms", end.LatencyMS, "parse_status", end.ParseStatus, "cost_usd", end.Cost.String())
	}
	if g.Tracing == nil {
		return
	}
	parent, kept := g.Tracing.Sampler.Keep(c.r.Header.Get("Traceparent"), c.id)
	if !kept {
		return
	}
	now := time.Now()
	server := c.span(parent, c.model, end.StatusCode)
	server.End = now
	g.Tracing.Add(server)

	a := &c.attempts[c.tried]
	operation := c.operation()
	span := tracing.Span{
		Trace: parent.Trace, ID: tracing.NewSpanID(), Parent: server.ID, Kind: tracing.Client, Name: operation,
		Start: c.readyAt, End: now,
		Texts: []tracing.Text{
			{Key: "gen_ai.operation.name", Value: operation}, {Key: "gen_ai.provider.name", Value: a.provider.GenAIName()},
			{Key: "modelgate.provider", Value: a.name}, {Key: "modelgate.parse_status", Value: string(end.ParseStatus)}, {Key: "modelgate.cost_usd", Value: end.Cost.String()},
		},
		Numbers: []tracing.Number{
			{Key: "gen_ai.usage.input_tokens", Value: end.Usage.InputTokens()}, {Key: "gen_ai.usage.output_tokens", Value: end.Usage.OutputTokens()},
			{Key: "http.response.status_code", Value: int64(end.StatusCode)}, {Key: "modelgate.first_byte_ms", Value: end.FirstByteMS},
		},
		Failed: failure(end.StatusCode),
	}
	if a.model != "" {
		span.Name += " " + a.model
		span.Texts = append(span.Texts, tracing.Text{Key: "gen_ai.request.model", Value: a.model})
	}
	g.Tracing.Add(span)
}

// traceRefusal makes the span of a request that the gateway turned down.
func (g *Gateway) traceRefusal(in *inbound, model *modelgate.Model, err error) {
	if g.Tracing == nil {
		return
	}
	parent, kept := g.Tracing.Sampler.Keep(in.r.Header.Get("Traceparent"), in.id)
	if !kept {
		return
	}
	kind := modelgate.KindOf(err)
	span := in.span(parent, model, kind.Status())
	span.End, span.Failed = time.Now(), kind.Type()
	g.Tracing.Add(span)
}

// span is that of the request which the gateway answered.
func (in *inbound) span(parent tracing.Parent, model *modelgate.Model, status int) tracing.Span {
	route := in.surface
	if route == "" {
		route = "unresolved" // bounded, whatever a client sent
	}
	s := tracing.Span{
		Trace: parent.Trace, ID: tracing.NewSpanID(), Parent: parent.Span, Kind: tracing.Server, Name: in.r.Method + " " + route, Start: in.start,
		Texts: []tracing.Text{
			{Key: "http.request.method", Value: in.r.Method}, {Key: "http.route", Value: route}, {Key: "modelgate.request_id", Value: in.id.String()},
		},
		Numbers: []tracing.Number{{Key: "http.response.status_code", Value: int64(status)}},
		Failed:  failure(status),
	}
	if in.caller != nil {
		s.Texts = append(s.Texts, tracing.Text{Key: "modelgate.client_id", Value: string(in.caller.ClientID)}, tracing.Text{Key: "modelgate.key_id", Value: string(in.caller.KeyID)})
	}
	if model != nil {
		s.Texts = append(s.Texts, tracing.Text{Key: "modelgate.model_slug", Value: model.Slug})
	}
	return s
}

// failure is the error.type of a status, "" for success.
func failure(status int) string {
	if status < 400 {
		return ""
	}
	return strconv.Itoa(status)
}

// operation is gen_ai.operation.name: a value of the conventions where there
// is one, else what the model makes.
func (c *call) operation() string {
	switch c.kind() {
	case modelgate.LLM, "":
		if c.surface == "/v1/completions" {
			return "text_completion"
		}
		return "chat"
	case modelgate.Embedding:
		return "embeddings"
	}
	return string(c.kind())
}
