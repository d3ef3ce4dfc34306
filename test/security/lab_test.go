package security

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/provider"
	"modelgate/test/testkit"
)

// full is the size at which the threats are stated; without it the tests take
// what a suite can.
var full = flag.Bool("full", false, "run at full size")

// benches are the providers of the shared gateway, each at a test's disposal.
// Model lab/NAME leads to the model native-NAME of the provider NAME.
var benches = []string{"s5", "s6", "s7", "s8", "s10", "s11", "s14", "s15", "s24", "s26", "s27", "s34", "s35",
	"s42", "s47", "s49", "leak", "zero", "base", "plain"}

// lab is the gateway that tests share.
type lab struct {
	*testkit.Gateway
	provider *hostile
	// key may do everything in its organization, limited may call models that
	// begin with ok- and nothing else, stranger is another organization's.
	key, limited, stranger string
	client                 modelgate.ClientID
}

// process stands in for a test where something lives as long as this process.
type process struct {
	testing.TB
	mu    sync.Mutex
	after []func()
}

func (p *process) Helper()      {}
func (p *process) Name() string { return "attack" }
func (p *process) Cleanup(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.after = append(p.after, f)
}
func (p *process) Fatal(args ...any)            { panic(fmt.Sprint(args...)) }
func (p *process) Fatalf(f string, args ...any) { panic(fmt.Sprintf(f, args...)) }
func (p *process) TempDir() string {
	dir, err := os.MkdirTemp("", "attack-")
	if err != nil {
		panic(err)
	}
	p.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func (p *process) end() {
	for i := len(p.after) - 1; i >= 0; i-- {
		p.after[i]()
	}
}

var suite process

func TestMain(m *testing.M) {
	code := m.Run()
	suite.end()
	os.Exit(code)
}

var sharedLab = sync.OnceValue(func() *lab {
	h := newHostile(&suite)
	var providers, catalog strings.Builder
	for _, name := range benches {
		furnish(&providers, &catalog, h, name)
	}
	for _, f := range provider.Formats() {
		for _, set := range []string{"f", "h", "n", "q", "r"} {
			fmt.Fprintf(&providers, "\n  - {name: %s-%s, format: %s, base_url: \"%s/%s-%s\", region: us, credential: sk-upstream%s}", set, f.Name, f.Name, h.URL, set, f.Name, placeOf(f.Name))
		}
	}
	fmt.Fprintf(&providers, "\n  - {name: h-model-paths, format: generic, base_url: \"%s/h-model-paths\", region: us, credential: sk-upstream, allow: [\"POST /model/{model}/invoke\", \"POST /model/{model}/converse\", \"POST /run/{model}:go\"]}", h.URL)
	l := &lab{provider: h}
	var prices strings.Builder
	for _, f := range provider.Formats() {
		fmt.Fprintf(&prices, "\n  - {provider: r-%s, model: \"*\", price: {second: 0.0001}}", f.Name)
		fmt.Fprintf(&prices, "\n  - {provider: q-%s, model: \"*\", price: {input: 1, output: 10, audio_output: 10, characters: 10, search: 10, second: 0.0001}}", f.Name)
	}
	l.Gateway = testkit.StartGateway(&suite, testkit.GatewayOptions{Upstream: h.URL, Providers: providers.String(), Catalog: catalog.String(), More: "prices:" + prices.String() + "\n"})
	l.client = l.NewClient("attacked")
	l.key, _ = l.NewKey(l.client)
	l.stranger, _ = l.NewKey(l.NewClient("strangers"))
	narrow := l.NewClient("narrow")
	file := suite.TempDir() + "/ceiling.json"
	const only = `[{"axis":"provider","provider":"*","model_pattern":"ok-*","effect":"allow"}]`
	if err := os.WriteFile(file, []byte(`{"max_scopes":["inference:use"],"entitlements":`+only+`}`), 0o600); err != nil {
		panic(err)
	}
	l.Admin(nil, "ceiling", "set", "--client", string(narrow), "--file", file)
	l.limited, _ = l.NewKey(narrow)
	return l
})

// placeOf is what a provider of a format needs besides.
func placeOf(format string) string {
	if format == "vertex" {
		return ", project: p, location: us-central1"
	}
	return ""
}

// furnish adds the provider of a bench, and its model.
func furnish(providers, catalog *strings.Builder, h *hostile, name string) {
	fmt.Fprintf(providers, "\n  - {name: %s, format: openai, base_url: \"%s/%s\", region: us, credential: sk-upstream}", name, h.URL, name)
	fmt.Fprintf(catalog, "\n  - {slug: lab/%s, kind: llm, routes: [{provider: %s, model: native-%s}], price: {input: 1, output: 2}}", name, name, name)
}

// newLabAlone is a gateway with one bench and nobody else, for a test that
// measures its memory.
func newLabAlone(t *testing.T, name string) *lab {
	t.Helper()
	h := newHostile(t)
	var providers, catalog strings.Builder
	furnish(&providers, &catalog, h, name)
	l := &lab{provider: h, Gateway: testkit.StartGateway(t, testkit.GatewayOptions{Upstream: h.URL, Providers: providers.String(), Catalog: catalog.String()})}
	l.client = l.NewClient("attacked")
	l.key, _ = l.NewKey(l.client)
	return l
}

// newLab is the shared gateway on behalf of a test.
func newLab(t *testing.T) *lab {
	t.Helper()
	shared := sharedLab()
	mine := *shared
	mine.Gateway = shared.For(t)
	return &mine
}

// seen is a request as it reached the provider.
type seen struct {
	*http.Request
	body string
}

// dump is all of a request that can hold a secret.
func (s seen) dump() string {
	return fmt.Sprint(s.Method, s.RequestURI, s.Host, s.Header, s.Trailer, s.body)
}

// hostile is a provider in which every test has a corner of its own, told
// apart by the first segment of the path.
type hostile struct {
	URL     string
	mu      sync.Mutex
	corners map[string]*corner
}

type corner struct {
	mu     sync.Mutex
	answer http.HandlerFunc
	got    []seen
}

const plainReply = `{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"ok"}}],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}`

func newHostile(t testing.TB) *hostile {
	h := &hostile{corners: map[string]*corner{}}
	server := httptest.NewServer(h)
	h.URL = server.URL
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return h
}

func (h *hostile) corner(name string) *corner {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.corners[name]
	if c == nil {
		c = &corner{}
		h.corners[name] = c
	}
	return c
}

func (h *hostile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	first, _, _ := strings.Cut(strings.TrimPrefix(r.RequestURI, "/"), "/")
	c := h.corner(first)
	body, _ := io.ReadAll(r.Body) // what a broken request held is seen as far as it came
	c.mu.Lock()
	c.got = append(c.got, seen{r, string(body)})
	answer := c.answer
	c.mu.Unlock()
	if answer != nil {
		answer(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, plainReply)
}

// replies sets what the corner answers from now on.
func (c *corner) replies(answer http.HandlerFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer = answer
}

// take is what has reached the corner since it was last asked.
func (c *corner) take() []seen {
	c.mu.Lock()
	defer c.mu.Unlock()
	got := c.got
	c.got = nil
	return got
}

// answer is what a client got.
type answer struct {
	*http.Response
	body string
}

func (a answer) String() string { return fmt.Sprintf("%s %v %.300s", a.Status, a.Header, a.body) }

// patience is how long a test waits for an answer; on a busy machine there is
// little that cannot take seconds.
const patience = 2 * time.Minute

// raw sends bytes on a connection of its own and reads one answer. It is nil
// where the connection was closed without one.
func (l *lab) raw(t testing.TB, request string) *answer {
	t.Helper()
	conn, err := net.DialTimeout("tcp", strings.TrimPrefix(l.URL, "http://"), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	_, _ = io.WriteString(conn, request) // it may be refused before its end
	if tcp, ok := conn.(*net.TCPConn); ok && !strings.Contains(request, "Connection: keep-alive") {
		_ = tcp.CloseWrite()
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body) // a cut answer counts as far as it came
	return &answer{resp, string(text)}
}

// request is the text of one request of a key's owner; lines are further
// header lines.
func (l *lab) request(method, target, body string, lines ...string) string {
	head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n",
		method, target, l.key, len(body))
	for _, line := range lines {
		head += line + "\r\n"
	}
	return head + "\r\n" + body
}

var client = &http.Client{
	Timeout:       patience,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	// Connections are let go long before the gateway ends them: a call on one
	// that ends just then would fail.
	Transport: &http.Transport{MaxIdleConnsPerHost: 256, IdleConnTimeout: 30 * time.Second, DisableCompression: true},
}

// call makes a call as a key's owner; headers come in pairs and replace the
// usual ones.
func (l *lab) call(t testing.TB, key, method, target, body string, headers ...string) answer {
	t.Helper()
	return ask(t, l.URL, key, method, target, body, headers...)
}

func ask(t testing.TB, base, key, method, target, body string, headers ...string) answer {
	t.Helper()
	req, err := http.NewRequest(method, base+target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		text = append(text, "[cut]"...)
	}
	return answer{resp, string(text)}
}

// chat is the body of a small chat with a model.
func chat(model string) string {
	return fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"hello"}]}`, model)
}

// metric reads a figure of the gateway's metrics.
func metric(t testing.TB, base, name string) float64 {
	t.Helper()
	resp, err := client.Get(base + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		var value float64
		if rest, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			fmt.Sscan(rest, &value)
			return value
		}
	}
	t.Fatalf("%s/metrics has no %s: if it was renamed, rename it here and in docs/guides/metrics.md", base, name)
	return 0
}

// eventually waits for what another process does.
func eventually(t testing.TB, what string, within time.Duration, so func() bool) {
	t.Helper()
	for end := time.Now().Add(within); !so(); {
		if time.Now().After(end) {
			t.Errorf("waited %v in vain until: %s", within, what)
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// last is the request that is being answered, where calls come one by one.
func (c *corner) last() seen {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.got[len(c.got)-1]
}
