package gateway

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"modelgate"
	"modelgate/internal/auth"
	"modelgate/internal/httpx"
	"modelgate/internal/ratelimit"
)

// sink is a response that goes nowhere.
type sink struct{ header http.Header }

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) Write(b []byte) (int, error) { return len(b), nil }
func (s *sink) WriteHeader(int)             {}
func (s *sink) Flush()                      {}

// ledgerless are books that keep nothing.
type ledgerless struct{}

func (ledgerless) Begin(*modelgate.CallBegin) error             { return nil }
func (ledgerless) Mark(modelgate.UUID, *modelgate.CallEnd)      {}
func (ledgerless) End(modelgate.UUID, *modelgate.CallEnd) error { return nil }

func benchGateway(b *testing.B) (*Gateway, *Snapshot) {
	live := liveAt(b, "http://127.0.0.1:1", plan{})
	caller := modelgate.Caller{ClientID: "c", KeyID: "k", Scopes: []modelgate.Scope{modelgate.InferenceUse}, Entitlements: modelgate.OpenEntitlements()}
	return New(Options{
		Live: func() *Snapshot { return live }, Keys: known(caller), Limiter: ratelimit.NewLocal(modelgate.Limits{}, time.Now),
		Books: ledgerless{}, Log: slog.New(slog.DiscardHandler), Metrics: NewMetrics(prometheus.NewRegistry()), MaxBody: 1 << 20,
	}), live
}

// Everything up to the first byte to a provider, for a chat call of 1 KB.
func BenchmarkAdmit(b *testing.B) { benchmarkAdmit(b) }

// BenchmarkAdmitRates is BenchmarkAdmit with six rate limits, in memory.
func BenchmarkAdmitRates(b *testing.B) {
	var rules []*modelgate.RateLimit
	for i, u := range []modelgate.LimitUnit{modelgate.UnitRequests, modelgate.UnitConcurrency, modelgate.UnitTokens, modelgate.UnitInputTokens, modelgate.UnitOutputTokens, modelgate.UnitUSD} {
		r := &modelgate.RateLimit{Number: int64(i), Level: modelgate.LevelClient, Unit: u, Window: "minute", Limit: 1 << 50}
		if u == modelgate.UnitConcurrency {
			r.Window = ""
		}
		rules = append(rules, r)
	}
	benchmarkAdmit(b, rules...)
}

func benchmarkAdmit(b *testing.B, rules ...*modelgate.RateLimit) {
	g, live := benchGateway(b)
	if rules != nil {
		who, _ := g.Keys.Identify(b.Context(), "", auth.Origin{})
		limited := *who
		limited.RateLimits = rules
		g.Keys = known(limited)
	}
	g.Rates = ratelimit.NewRates(ratelimit.NewLocal(modelgate.Limits{}, time.Now))
	body := `{"model":"acme/chat","stream":true,"messages":[{"role":"user","content":"` + strings.Repeat("word ", 200) + `"}]}`
	header := http.Header{"Authorization": {"Bearer gw_live_any"}, "Content-Type": {"application/json"}, "User-Agent": {"OpenAI/Python 2.0"}}
	r, err := http.NewRequest(http.MethodPost, "/v1/chat/completions", nil)
	if err != nil {
		b.Fatal(err)
	}
	r.Header, r.ContentLength = header, int64(len(body))
	id := modelgate.NewIDs(time.Now).New()
	w := &sink{http.Header{httpx.RequestIDHeader: {id.String()}}}
	b.ReportAllocs()
	for b.Loop() {
		r.Body = io.NopCloser(strings.NewReader(body))
		c := &call{inbound: inbound{w: w, r: r, id: id, start: time.Now(), snapshot: live}}
		pass, err := g.enter(&c.inbound)
		entered, limited := g.enterRates(&c.inbound)
		if err := errors.Join(err, limited, g.resolveDoor(c), g.authorize(c), g.limitRates(c)); err != nil {
			b.Fatal(err)
		}
		pass.Release()
		entered.End()
		c.callRates.End()
	}
}

// pieces is a body that comes in pieces.
type pieces struct {
	list [][]byte
	next int
}

func (p *pieces) Read(b []byte) (int, error) {
	if p.next == len(p.list) {
		return 0, io.EOF
	}
	p.next++
	return copy(b, p.list[p.next-1]), nil
}

func (p *pieces) Close() error { return nil }

// A reply on its way: per call, and per event of a stream of a thousand.
func BenchmarkPass(b *testing.B) {
	event := []byte(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt-x","choices":[{"index":0,"delta":{"content":" word"},"finish_reason":null}],"usage":null}` + "\n\n")
	var stream [][]byte
	for range 1000 {
		stream = append(stream, event)
	}
	stream = append(stream, []byte(events(usageChunk(10, 5))), []byte(events("[DONE]")))
	for _, bm := range []struct {
		name, media string
		list        [][]byte
		length      int64
	}{
		{"value", "application/json", [][]byte{[]byte(chatReply)}, int64(len(chatReply))},
		{"stream", "text/event-stream", stream, -1},
	} {
		b.Run(bm.name, func(b *testing.B) {
			g, live := benchGateway(b)
			p := live.Providers["openai"]
			way := p.Door("/v1/chat/completions")
			request := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", nil)
			resp := &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {bm.media}}, ContentLength: bm.length}
			b.SetBytes(int64(len(bytes.Join(bm.list, nil))))
			b.ReportAllocs()
			for b.Loop() {
				resp.Body = &pieces{list: bm.list}
				c := &call{
					inbound: inbound{w: &sink{http.Header{}}, r: request, start: time.Now(), snapshot: live, caller: new(modelgate.Caller), surface: "/v1/chat/completions"},
					begun:   true, sent: true, model: live.Catalog.Find("acme/chat"), attempts: []attempt{{name: "openai", provider: p, model: "gpt-x", reader: way.Reader}},
				}
				c.client.upstream, c.stall = &c.upstream, new(stallTimer)
				g.streamReply(c, resp)
				g.finish(c)
			}
		})
	}
}
