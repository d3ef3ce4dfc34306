package gateway

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"modelgate"
	"modelgate/internal/auth"
	"modelgate/internal/httpx"
	"modelgate/internal/provider"
	"modelgate/internal/ratelimit"
)

// nobody is an address where nobody listens: no port that another test could
// be given meanwhile.
const nobody = "http://127.0.0.1:1"

// patience is how long a test waits for what must happen.
const patience = time.Minute

// TestMain fails when a call leaves a goroutine behind.
func TestMain(m *testing.M) {
	code := m.Run()
	if left := lingering(); code == 0 && left != "" {
		fmt.Fprintln(os.Stderr, "goroutines were left behind:\n"+left)
		code = 1
	}
	os.Exit(code)
}

// lingering lists goroutines of the packages under test once those that are
// ending have had time to.
func lingering() string {
	buf := make([]byte, 1<<20)
	left := ""
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		left = ""
		for g := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if (strings.Contains(g, "modelgate/internal/gateway.") || strings.Contains(g, "modelgate/internal/provider.")) && !strings.Contains(g, "gateway.TestMain") {
				left += g + "\n\n"
			}
		}
		if left == "" {
			return ""
		}
	}
	return left
}

// books records what is booked and when.
type books struct {
	mu      sync.Mutex
	begins  []modelgate.CallBegin
	marks   []modelgate.CallEnd
	ends    []modelgate.CallEnd
	onBegin func() error // nil accepts
	onEnd   func()
	lost    error         // what END fails with; nil: it does not
	marked  chan struct{} // a token for each mark
	ended   chan struct{} // a token for each END
}

func newBooks() *books {
	return &books{marked: make(chan struct{}, 1000), ended: make(chan struct{}, 1000)}
}

func (b *books) Begin(call *modelgate.CallBegin) error {
	if b.onBegin != nil {
		if err := b.onBegin(); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.begins = append(b.begins, *call)
	return nil
}

func (b *books) Mark(_ modelgate.UUID, seen *modelgate.CallEnd) {
	b.mu.Lock()
	b.marks = append(b.marks, *seen)
	b.mu.Unlock()
	b.marked <- struct{}{}
}

func (b *books) End(id modelgate.UUID, end *modelgate.CallEnd) error {
	if b.onEnd != nil {
		b.onEnd()
	}
	b.mu.Lock()
	b.ends = append(b.ends, *end)
	known := slices.ContainsFunc(b.begins, func(begin modelgate.CallBegin) bool { return begin.ID == id })
	b.mu.Unlock()
	b.ended <- struct{}{}
	if !known {
		return errors.New("END of a call that was not begun")
	}
	return b.lost
}

// only waits for the END of the one call and returns it.
func (b *books) only(t testing.TB) modelgate.CallEnd {
	t.Helper()
	wait(t, b.ended, "END")
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.begins) != 1 || len(b.ends) != 1 {
		t.Fatalf("%d BEGIN and %d END, want one of each", len(b.begins), len(b.ends))
	}
	return b.ends[0]
}

func (b *books) counts() (begins, ends int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.begins), len(b.ends)
}

func wait(t testing.TB, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("no %s", what)
	}
}

// anyone identifies every secret as the same caller.
type anyone struct {
	caller atomic.Pointer[modelgate.Caller]
}

func known(c modelgate.Caller) *anyone {
	a := new(anyone)
	a.set(c)
	return a
}

func (a *anyone) set(c modelgate.Caller) { a.caller.Store(&c) }

func (a *anyone) Identify(context.Context, string, auth.Origin) (*modelgate.Caller, error) {
	return a.caller.Load(), nil
}

// gate is a gateway behind a real server, with providers that all live at one
// upstream.
type gate struct {
	*httptest.Server
	gateway *Gateway
	books   *books
	jobs    *ledger
	live    atomic.Pointer[Snapshot]
	keys    *anyone
	caller  *modelgate.Caller
	client  *http.Client
}

// plan is what a test changes about a gate.
type plan struct {
	options   Options
	configure func(*provider.Config)
	// backup is the upstream of the second route of acme/two.
	backup string
	// live replaces all of the usual catalog and providers.
	live *Snapshot
	// caller is what the caller may use; nil is everything.
	caller modelgate.Entitlements
	// who replaces the usual caller.
	who *modelgate.Caller
}

// open starts a gate in front of an upstream.
func open(t testing.TB, upstream string, p plan) *gate {
	t.Helper()
	g := &gate{books: newBooks()}
	g.jobs = newLedger(g.books)
	g.caller = &modelgate.Caller{ClientID: "c", KeyID: "k", Scopes: []modelgate.Scope{modelgate.InferenceUse}, Entitlements: modelgate.OpenEntitlements()}
	if p.who != nil {
		g.caller = p.who
	}
	if p.caller != nil {
		g.caller.Entitlements = p.caller
	}
	live := p.live
	if live == nil {
		live = liveAt(t, upstream, p)
	}
	o := p.options
	g.keys = known(*g.caller)
	g.live.Store(live)
	o.Live, o.Keys, o.Books, o.Jobs = g.live.Load, g.keys, g.books, g.jobs
	if o.Flushed == nil {
		o.Flushed = func(context.Context) error { return nil }
	}
	o.Limiter = ratelimit.NewLocal(modelgate.Limits{}, time.Now)
	o.Log, o.Metrics, o.MaxBody = slog.New(slog.DiscardHandler), NewMetrics(prometheus.NewRegistry()), 1<<20
	g.gateway = New(o)
	ids := modelgate.NewIDs(time.Now)
	g.Server = httptest.NewUnstartedServer(httpx.Wrap(httpx.Options{IDs: ids, Log: o.Log, MaxBody: 1 << 20}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		first, _, _ := strings.Cut(r.URL.Path[1:], "/")
		if p := live.Providers[first]; p != nil {
			g.gateway.Proxy(w, r, p)
			return
		}
		g.gateway.Door(w, r)
	})))
	g.Server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	g.Start()
	transport := &http.Transport{DisableCompression: true}
	g.client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		g.CloseClientConnections()
		g.gateway.Cut()
		g.Close()
		g.gateway.Wait()
		for _, p := range live.Providers {
			p.Close()
		}
	})
	return g
}

func liveAt(t testing.TB, upstream string, p plan) *Snapshot {
	t.Helper()
	providers := make(map[string]*provider.Provider)
	for name, cfg := range map[string]provider.Config{
		"openai": {Format: "openai", BaseURL: upstream}, "anthropic": {Format: "anthropic", BaseURL: upstream},
		"gemini": {Format: "gemini", BaseURL: upstream}, "backup": {Format: "openai", BaseURL: p.backup},
	} {
		if cfg.BaseURL == "" {
			continue
		}
		cfg.Name, cfg.Region, cfg.Credentials = name, "eu", []string{"sk-one"}
		if p.configure != nil {
			p.configure(&cfg)
		}
		made, err := provider.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		providers[name] = made
	}
	price := new(modelgate.Price)
	for unit, usd := range map[modelgate.Unit]string{
		modelgate.UnitInput: "1", modelgate.UnitOutput: "2", modelgate.UnitCharacters: "15",
	} {
		amount, err := modelgate.ParseUSD(usd)
		if err == nil {
			err = price.Base.Set(unit, amount)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	model := func(slug string, kind modelgate.ModelKind, routes ...modelgate.Route) *modelgate.Model {
		return &modelgate.Model{Slug: slug, Kind: kind, Routes: routes, Price: price}
	}
	free := model("acme/unpriced", modelgate.LLM, modelgate.Route{Provider: "openai", Model: "gpt-u"})
	free.Price = nil
	small := model("acme/small", modelgate.LLM, modelgate.Route{Provider: "openai", Model: "gpt-s"})
	small.ContextLength = 5
	bounded := model("acme/bounded", modelgate.LLM, modelgate.Route{Provider: "openai", Model: "gpt-b"})
	bounded.ContextLength, bounded.MaxOutput, bounded.Price = 1000, 400, new(modelgate.Price)
	vector := model("acme/vector", modelgate.Embedding, modelgate.Route{Provider: "openai", Model: "vec"})
	vector.ContextLength, vector.Price = 1000, new(modelgate.Price)
	if err := vector.Price.Base.Set(modelgate.UnitInput, modelgate.USD); err != nil {
		t.Fatal(err)
	}
	tenfold := new(modelgate.Price)
	for p, times := range map[*modelgate.Price]modelgate.Nano{bounded.Price: 1, tenfold: 10} {
		if err := errors.Join(p.Base.Set(modelgate.UnitInput, times*modelgate.USD), p.Base.Set(modelgate.UnitOutput, 2*times*modelgate.USD)); err != nil {
			t.Fatal(err)
		}
	}
	catalog, err := modelgate.NewCatalog([]*modelgate.Model{
		bounded, vector,
		model("acme/dear", modelgate.LLM, modelgate.Route{Provider: "openai", Model: "gpt-d"}, modelgate.Route{Provider: "backup", Model: "gpt-e", Price: tenfold}),
		model("acme/half", modelgate.LLM, modelgate.Route{Provider: "openai", Model: "gpt-h", Price: new(modelgate.Price)}, modelgate.Route{Provider: "backup", Model: "gpt-i"}),
		model("acme/nowhere", modelgate.LLM, modelgate.Route{Provider: "missing", Model: "gpt-n"}),
		model("acme/chat", modelgate.LLM, modelgate.Route{Provider: "openai", Model: "gpt-x"}),
		model("acme/claude", modelgate.LLM, modelgate.Route{Provider: "anthropic", Model: "claude-x"}),
		model("acme/gemini", modelgate.LLM, modelgate.Route{Provider: "gemini", Model: "gemini-x"}),
		model("acme/voice", modelgate.Audio, modelgate.Route{Provider: "openai", Model: "tts"}),
		model("acme/embed", modelgate.Embedding, modelgate.Route{Provider: "openai", Model: "ada"}),
		model("acme/two", modelgate.LLM, modelgate.Route{Provider: "openai", Model: "gpt-x"}, modelgate.Route{Provider: "backup", Model: "gpt-y"}),
		free, small,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return NewSnapshot(catalog, providers)
}

// request is a call of a gate by a client that can leave.
func (g *gate) request(ctx context.Context, path, body string) *http.Request {
	method := http.MethodPost
	if body == "" {
		method = http.MethodGet
	}
	r, err := http.NewRequestWithContext(ctx, method, g.URL+path, strings.NewReader(body))
	if err != nil {
		panic(err) // a fixed method and URL
	}
	r.Header.Set("Authorization", "Bearer gw_live_any")
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

// do makes a call and reads the answer to its end.
func (g *gate) do(t testing.TB, path, body string) (resp *http.Response, answer []byte, readErr error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	resp, err := g.client.Do(g.request(ctx, path, body))
	if err != nil {
		t.Fatalf("call: %v", err)
	}
	defer resp.Body.Close()
	answer, readErr = io.ReadAll(resp.Body)
	return resp, answer, readErr
}

// raw is an upstream whose handler writes bytes to its connection, for what
// no HTTP server would send.
type raw struct {
	URL  string
	hits atomic.Int64  // requests read
	got  chan struct{} // a token for each request read
}

// rawUpstream serves connections until the test ends. The handler is given
// each request, its body read; it returns whether the connection stays open.
func rawUpstream(t testing.TB, handle func(conn net.Conn, r *http.Request) (keep bool)) *raw {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u := &raw{URL: "http://" + listener.Addr().String(), got: make(chan struct{}, 1000)}
	var mu sync.Mutex
	var conns []net.Conn
	var serving sync.WaitGroup
	t.Cleanup(func() {
		listener.Close()
		mu.Lock()
		for _, c := range conns {
			c.Close()
		}
		mu.Unlock()
		serving.Wait()
	})
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
			serving.Go(func() { u.serve(conn, handle) })
		}
	})
	return u
}

func (u *raw) serve(conn net.Conn, handle func(net.Conn, *http.Request) bool) {
	defer conn.Close()
	reader := bufio.NewReader(conn)
	for {
		r, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		u.hits.Add(1)
		u.got <- struct{}{}
		if !handle(conn, r) {
			return
		}
	}
}

// reply makes an HTTP/1.1 response of a header and a body as they stand.
func reply(header, body string) string {
	return "HTTP/1.1 200 OK\r\n" + strings.ReplaceAll(header, "\n", "\r\n") + "\r\n\r\n" + body
}

// sized is a whole reply of known length.
func sized(contentType, body string) string {
	return reply(fmt.Sprintf("Content-Type: %s\nContent-Length: %d", contentType, len(body)), body)
}

// chunks is a chunked body in pieces; its end is left to the caller.
func chunks(pieces ...string) string {
	var b strings.Builder
	for _, p := range pieces {
		fmt.Fprintf(&b, "%x\r\n%s\r\n", len(p), p)
	}
	return b.String()
}

const lastChunk = "0\r\n\r\n"

// sends is an upstream handler that writes a text and keeps the connection.
func sends(text string) func(net.Conn, *http.Request) bool {
	return func(conn net.Conn, _ *http.Request) bool {
		_, err := io.WriteString(conn, text)
		return err == nil
	}
}

// The calls of most tests.
const (
	chatBody   = `{"model":"acme/chat","messages":[]}`
	streamBody = `{"model":"acme/chat","stream":true,"stream_options":{"include_usage":true},"messages":[]}`
	claudeBody = `{"model":"acme/claude","stream":true,"max_tokens":5,"messages":[]}`
	// chatReply uses 10 tokens in and 5 out: 20,000 nano-USD.
	chatReply = `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`
	chatCost  = modelgate.Nano(20_000)
)
