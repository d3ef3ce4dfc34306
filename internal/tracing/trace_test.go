package tracing

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

func TestParseParent(t *testing.T) {
	t.Parallel()
	const trace, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	for header, want := range map[string]string{
		"00-" + trace + "-" + span + "-01":                    "sampled",
		"00-" + trace + "-" + span + "-00":                    "not sampled",
		"cc-" + trace + "-" + span + "-01-more":               "sampled",
		"00-" + trace + "-" + span + "-01-more":               "",
		"ff-" + trace + "-" + span + "-01":                    "",
		"00-" + trace + "-" + span:                            "",
		"00-00000000000000000000000000000000-" + span + "-01": "",
		"00-" + trace + "-0000000000000000-01":                "",
		"00-4BF92F3577B34DA6A3CE929D0E0E4736-" + span + "-01": "",
		"00-" + trace[:30] + "-" + span + "-01":               "",
		"00-" + trace + "-" + span + "-zz":                    "",
		"":                                                    "",
	} {
		p, ok := ParseParent(header)
		got := map[bool]string{true: "sampled", false: "not sampled"}[p.Sampled]
		if !ok {
			got = ""
		}
		if got != want {
			t.Errorf("ParseParent(%q) = %q, want %q", header, got, want)
		}
	}
}

func TestSampler(t *testing.T) {
	t.Parallel()
	kept := 0
	for i := range 1000 {
		id := [16]byte{8: byte(i * 7), 9: byte(i), 10: byte(i * 31), 11: byte(i * 3), 12: byte(i * 11), 13: byte(i * 5), 14: 1, 15: byte(i >> 8)}
		if _, ok := NewSampler(30).Keep("", id); ok {
			kept++
		}
		if _, ok := NewSampler(0).Keep("", id); ok {
			t.Fatal("kept by a sampler that keeps none")
		}
		if p, ok := NewSampler(100).Keep("", id); !ok || p.Trace != ID(id) {
			t.Fatal("not kept by a sampler that keeps all, or under another id")
		}
	}
	if kept < 200 || kept > 400 {
		t.Errorf("%d of 1000 kept, want about 300", kept)
	}
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	if p, ok := NewSampler(0).Keep(parent, [16]byte{1}); !ok || p.Span == (SpanID{}) {
		t.Errorf("a trace that the client keeps is not kept: %+v", p)
	}
}

// TestExport reads what a collector gets, and has it refuse the first time.
func TestExport(t *testing.T) {
	t.Parallel()
	got, refuse := make(chan *otlp.TracesData, 1), make(chan struct{}, 1)
	refuse <- struct{}{}
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var data otlp.TracesData
		if err != nil || proto.Unmarshal(body, &data) != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("%s %s: %v", r.URL, r.Header, err)
		}
		select {
		case <-refuse:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			got <- &data
		}
	}))
	defer collector.Close()
	e := NewExporter(Options{Endpoint: collector.URL + "/", Version: "v1", Instance: "one", Log: slog.New(slog.DiscardHandler)})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { e.Run(ctx); close(done) }()
	start := time.Unix(1, 2)
	for range batch {
		e.Add(Span{Trace: ID{1}, ID: SpanID{2}, Parent: SpanID{3}, Name: "chat m", Kind: Client, Start: start, End: start.Add(time.Second),
			Texts: []Text{{"gen_ai.request.model", "m\xff"}}, Numbers: []Number{{"gen_ai.usage.input_tokens", 7}}, Failed: "502"})
	}
	data := <-got
	for sent, _ := e.Stats(); sent == 0; sent, _ = e.Stats() {
		runtime.Gosched()
	}
	stop()
	<-done
	scope := data.ResourceSpans[0].ScopeSpans[0]
	s := scope.Spans[0]
	if len(scope.Spans) != batch || s.TraceId[0] != 1 || s.ParentSpanId[0] != 3 || s.Kind != otlp.Span_SPAN_KIND_CLIENT || s.StartTimeUnixNano != 1_000_000_002 ||
		s.Status.Code != otlp.Status_STATUS_CODE_ERROR || len(s.Attributes) != 3 || s.Attributes[1].Value.GetIntValue() != 7 {
		t.Errorf("%d spans, the first %v", len(scope.Spans), s)
	}
	if sent, dropped := e.Stats(); sent != batch || dropped != 0 {
		t.Errorf("%d sent, %d dropped", sent, dropped)
	}
}

// TestDrop fills the queue while nobody sends.
func TestDrop(t *testing.T) {
	t.Parallel()
	e := NewExporter(Options{Endpoint: "http://127.0.0.1:1", Log: slog.New(slog.DiscardHandler)})
	for range queued + 5 {
		e.Add(Span{})
	}
	if _, dropped := e.Stats(); dropped != 5 {
		t.Errorf("%d dropped, want 5", dropped)
	}
}
