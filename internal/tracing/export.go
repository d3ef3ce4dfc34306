package tracing

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"modelgate/internal/cancelctx"
)

const (
	queued     = 4096 // spans that wait; more are dropped
	batch      = 512  // spans a request
	every      = 2 * time.Second
	sendWithin = 5 * time.Second
	attempts   = 3
)

// Options are what NewExporter needs; all fields are required.
type Options struct {
	// Endpoint is the collector's address without /v1/traces.
	Endpoint string
	// Version and Instance describe this process.
	Version, Instance string
	Log               *slog.Logger
}

// Exporter sends spans to a collector. Add never waits: while the collector
// does not keep up, spans are dropped and counted. Safe for concurrent use.
type Exporter struct {
	Options
	spans   chan Span
	client  *http.Client
	url     string
	sent    atomic.Int64
	dropped atomic.Int64
	failing atomic.Bool
}

// NewExporter makes an exporter; Run does the sending.
func NewExporter(o Options) *Exporter {
	return &Exporter{
		Options: o, spans: make(chan Span, queued), client: &http.Client{Timeout: sendWithin},
		url: strings.TrimRight(o.Endpoint, "/") + "/v1/traces",
	}
}

// Add hands over a finished span.
func (e *Exporter) Add(s Span) {
	select {
	case e.spans <- s:
	default:
		e.dropped.Add(1)
	}
}

// Stats are spans sent and dropped since the start.
func (e *Exporter) Stats() (sent, dropped int64) { return e.sent.Load(), e.dropped.Load() }

// Run sends until the context ends, and then the spans that are left, in one
// attempt.
func (e *Exporter) Run(ctx context.Context) {
	defer e.client.CloseIdleConnections()
	tick := time.NewTicker(every)
	defer tick.Stop()
	var waiting []Span
	for {
		select {
		case s := <-e.spans:
			waiting = append(waiting, s)
			if len(waiting) < batch {
				continue
			}
		case <-tick.C:
		case <-ctx.Done():
			for range len(e.spans) {
				waiting = append(waiting, <-e.spans)
			}
			if err := e.send(context.WithoutCancel(ctx), waiting); err != nil {
				e.dropped.Add(int64(len(waiting)))
			}
			return
		}
		e.deliver(ctx, waiting)
		waiting = waiting[:0]
	}
}

// deliver sends a batch. After a few attempts it drops the batch, because newer
// spans are worth more.
func (e *Exporter) deliver(ctx context.Context, spans []Span) {
	var err error
	for i := range attempts {
		if err = e.send(context.WithoutCancel(ctx), spans); err == nil {
			e.failing.Store(false)
			return
		}
		if cancelctx.Sleep(ctx, time.Second<<i) != nil {
			break
		}
	}
	e.dropped.Add(int64(len(spans)))
	if ctx.Err() == nil && !e.failing.Swap(true) {
		e.Log.Warn("the collector takes no traces; they are dropped until it does", "error", err)
	}
}

func (e *Exporter) send(ctx context.Context, spans []Span) error {
	if len(spans) == 0 {
		return nil
	}
	body, err := proto.Marshal(e.message(spans))
	if err != nil {
		return fmt.Errorf("encode spans: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-protobuf")
	resp, err := e.client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection can be used again
	if resp.StatusCode >= 300 {
		return fmt.Errorf("the collector answered %s", resp.Status)
	}
	e.sent.Add(int64(len(spans)))
	return nil
}

// message is a request of OTLP: its body has the shape of TracesData.
func (e *Exporter) message(spans []Span) *otlp.TracesData {
	list := make([]*otlp.Span, 0, len(spans))
	for i := range spans {
		list = append(list, encode(&spans[i]))
	}
	return &otlp.TracesData{ResourceSpans: []*otlp.ResourceSpans{{
		Resource: &resource.Resource{Attributes: []*common.KeyValue{
			text("service.name", "modelgate"), text("service.version", e.Version), text("service.instance.id", e.Instance),
		}},
		ScopeSpans: []*otlp.ScopeSpans{{Scope: &common.InstrumentationScope{Name: "modelgate"}, Spans: list}},
	}}}
}

func encode(s *Span) *otlp.Span {
	out := &otlp.Span{
		TraceId: s.Trace[:], SpanId: s.ID[:], Name: s.Name, Kind: otlp.Span_SpanKind(s.Kind),
		StartTimeUnixNano: uint64(s.Start.UnixNano()), EndTimeUnixNano: uint64(s.End.UnixNano()),
	}
	if s.Parent != (SpanID{}) {
		out.ParentSpanId = s.Parent[:]
	}
	for _, t := range s.Texts {
		out.Attributes = append(out.Attributes, text(t.Key, t.Value))
	}
	for _, n := range s.Numbers {
		out.Attributes = append(out.Attributes, &common.KeyValue{Key: n.Key, Value: &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: n.Value}}})
	}
	if s.Failed != "" {
		out.Status = &otlp.Status{Code: otlp.Status_STATUS_CODE_ERROR}
		out.Attributes = append(out.Attributes, text("error.type", s.Failed))
	}
	return out
}

func text(key, value string) *common.KeyValue {
	return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: strings.ToValidUTF8(value, "�")}}}
}
