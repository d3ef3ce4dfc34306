package security

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"modelgate/internal/provider"
	"modelgate/internal/provider/target"
	"modelgate/test/testkit"
)

// canary is a server that nobody may call.
func canary(t *testing.T) (url string, calls *atomic.Int64) {
	t.Helper()
	calls = new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { calls.Add(1) }))
	t.Cleanup(server.Close)
	return server.URL, calls
}

// TestNoHostFromARequest offers the gateway other hosts to call: in bodies,
// headers and queries, and in the operator's own file where they would be a
// cloud's metadata service.
func TestNoHostFromARequest(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	trap, calls := canary(t)
	host := strings.TrimPrefix(trap, "http://")
	var members, headers []string
	for _, name := range []string{"api_base", "base_url", "baseURL", "apiBase", "api_url", "endpoint", "host", "url", "target", "upstream", "proxy", "custom_llm_provider", "azure_endpoint",
		"webhook", "callback_url", "aws_bedrock_runtime_endpoint", "vertex_project", "metadata", "litellm_params"} {
		members = append(members, fmt.Sprintf(`%q:%q`, name, trap), fmt.Sprintf(`%q:{"api_base":%q,"url":%q}`, "x_"+name, trap, trap))
		headers = append(headers, name, trap, "X-"+strings.ReplaceAll(name, "_", "-"), trap)
	}
	headers = append(headers, "X-Forwarded-Host", host, "X-Host", host, "X-Original-Url", trap, "X-Upstream", trap, "Helicone-Target-Url", trap, "Destination", trap, "Proxy", trap)
	body := `{"model":"lab/s11","messages":[],` + strings.Join(members, ",") + `}`
	for _, path := range []string{"/v1/chat/completions", "/s11/v1/chat/completions"} {
		for _, query := range []string{"", "?api_base=" + trap + "&base_url=" + trap + "&url=" + trap + "&host=" + host} {
			want := 200
			if query != "" {
				want = 400 // no parameter of these is known
			}
			if a := l.call(t, l.key, "POST", path+query, body, headers...); a.StatusCode != want {
				t.Errorf("%s%s: %s", path, query, a)
			}
		}
	}
	for _, target := range []string{"/" + host + "/v1/chat/completions", "/http:" + host + "/v1", "/s11@" + host + "/v1/chat/completions", "/s11:80@" + host + "/", "/s11/@" + host + "/v1"} {
		if a := l.raw(t, l.request("POST", target, chat("m"))); a == nil || a.StatusCode < 400 {
			t.Errorf("%s: %v", target, a)
		}
	}
	for _, s := range l.provider.corner("s11").take() {
		if "http://"+s.Host != l.provider.URL || !strings.HasPrefix(s.RequestURI, "/s11/v1/chat/completions") {
			t.Errorf("a call went to %s%s", s.Host, s.RequestURI)
		}
	}
	if n := calls.Load(); n != 0 {
		t.Errorf("%d connections to the offered host", n)
	}
	for _, base := range []string{
		"http://169.254.169.254", "http://169.254.169.254/latest/meta-data", "http://[::ffff:169.254.169.254]", "http://[::ffff:a9fe:a9fe]:80", "http://[fd00:ec2::254]", "http://169.254.170.2",
		"http://100.100.100.200", "http://metadata.google.internal", "http://METADATA.google.internal.", "http://metadata.goog/x", "http://169.254.169.254.:80",
		"http://user:pass@127.0.0.1", "http://127.0.0.1/?x=1", "http://127.0.0.1/#x", "ftp://127.0.0.1", "file:///etc/passwd", "//127.0.0.1", "127.0.0.1:80", "unix:/run/x", "gopher://127.0.0.1", "http://",
	} {
		file := filepath.Join(t.TempDir(), "modelgate.yaml")
		text := fmt.Sprintf("server: {data_dir: .}\nproviders:\n  - {name: p, format: openai, base_url: %q, credential: k}\n", base)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, errs, code := l.Run("config", "check", "--config", file); code == 0 {
			t.Errorf("base_url %s: %s%s", base, out, errs)
		}
	}
}

// hostileTargets are request targets that two servers could read differently.
func hostileTargets() []string {
	targets := []string{
		"*", "", "http://evil.example/v1", "https://evil.example/", "//evil.example/v1", "evil.example:443", "http:///v1", "/%2e%2e/gw/me", "/..", "/.", "//", "/\\", "/%5c", "/%00",
		"/ HTTP/1.0\r\nX: y", "/v1#", "/v1/\x00", "/\u202e", "/%", "/%zz", "/%u002e%u002e/", "/" + strings.Repeat("a", 9000), "/" + strings.Repeat("%61", 3000),
	}
	inner := []string{
		"..", ".", "../..", "%2e%2e", "%2E%2e", ".%2e", "%2e.", "%2e", "..%2f", "..%5c", "..\\", "..;", "..;/..", ";/..", "%2f", "%2F", "%5c", "%5C", "\\", "%00", "%00..", "a%00", "%0a", "%0d%0a", "%09", "%7f", "%1f",
		"%252e%252e", "%252f", "%25252e", "%c0%ae%c0%ae", "%c0%af", "%e0%80%ae", "%uff0e%uff0e", "%ff", "%fe%ff", "..%c0%af", "a//b", "/", "//x", "./x", "x/./y", "x/../y", "x/..", "x/../../../../gw/me", ";x=y", "%3b", "%3B..", "#", "%20%2e%2e", "é", "\u2025", "|", "{x}", "[x]", "<x>", "\"", "`", "^", "a b", "\tx",
	}
	for _, text := range inner {
		targets = append(targets, "/P/"+text, "/P/v1/"+text, "/P/v1/"+text+"/chat/completions", "/P"+text+"/v1/models", "/"+text+"/P/v1/models")
	}
	for _, first := range []string{"%50", "P%2f", "P%00", "P%20", "P ", "P.", "P/.", "P;", "P;x", "P:", "P@", "P%3a80", "P%40evil"} {
		targets = append(targets, "/"+first+"/v1/models")
	}
	return targets
}

// TestHostileRequestTargets sends every such target towards every format of
// provider. None arrives in a form that leads out of the provider's own base
// URL, or to anything that its row does not list.
func TestHostileRequestTargets(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	targets := hostileTargets()
	var work sync.WaitGroup
	for _, f := range provider.Formats() {
		work.Go(func() {
			name := "f-" + f.Name
			corner := l.provider.corner(name)
			for i, target := range targets {
				method := []string{"GET", "POST"}[i%2]
				target = strings.ReplaceAll(target, "P", name)
				a := l.raw(t, l.request(method, target, `{"model":"ok-m","messages":[]}`))
				if a == nil {
					t.Errorf("%s %.80q: no answer", method, target)
					continue
				}
				got := corner.take()
				if len(got) > 0 && !wellBehaved(got[0].RequestURI, name) {
					t.Errorf("%s %.80q reached the provider as %q", method, target, got[0].RequestURI)
				}
				if len(got) == 0 && a.StatusCode < 400 && !strings.Contains(target, "%40evil") {
					t.Errorf("%s %.80q: %s", method, target, a)
				}
				if len(got) > 0 && strings.ContainsAny(target, "%\\;#\x00|") {
					t.Errorf("%s %.80q was forwarded as %q", method, target, got[0].RequestURI)
				}
			}
		})
	}
	work.Wait()
}

// wellBehaved reports whether a target stays below the corner and means the
// same to every reader.
func wellBehaved(uri, corner string) bool {
	path, _, _ := strings.Cut(uri, "?")
	return strings.HasPrefix(path, "/"+corner+"/") && target.Judge(path) == nil && !strings.Contains(path, "..")
}

// TestHostPoisoning names another host in every place where a server might
// take its own name from.
func TestHostPoisoning(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, target := range []string{"/gw/me", "/gw/models", "/v1/models", "/gw/keys", "/gw/nothing", "/nothing", "/s14/v1/models", "/healthz", "/v1/chat/completions", "http://evil.example/gw/me"} {
		for _, host := range []string{"evil.example", "evil.example:80", "127.0.0.1@evil.example", "evil.example\r\nX-Forwarded-Host: evil.example", "\r\nForwarded: host=evil.example"} {
			a := l.raw(t, "GET "+target+" HTTP/1.1\r\nHost: "+host+"\r\nAuthorization: "+l.key+"\r\n\r\n")
			if a != nil && strings.Contains(fmt.Sprint(a.Header, a.body), "evil.example") {
				t.Errorf("GET %s with the host %q: %s", target, host, a)
			}
		}
	}
	for _, s := range l.provider.corner("s14").take() {
		if strings.Contains(s.dump(), "evil.example") {
			t.Errorf("the provider got %s", s.dump())
		}
	}
}

// TestProviderRedirectsAreNotFollowed lets a provider redirect calls to another
// host, which would be handed the credential, or to places in the gateway.
func TestProviderRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	trap, calls := canary(t)
	host := strings.TrimPrefix(trap, "http://")
	corner := l.provider.corner("s15")
	for _, status := range []int{300, 301, 302, 303, 307, 308} {
		for _, location := range []string{
			trap + "/steal", "//" + host + "/steal", "http://" + host, "/\\" + host, "http:" + trap[5:], "https://s15@" + host, "\\\\" + host, " " + trap, "http://169.254.169.254/",
			"../../gw/me", "/s15/../gw/me", "/gw/me", l.provider.URL + "/s15/%2e%2e/gw", l.provider.URL + "@" + host, "javascript:alert(1)", "data:text/html,x",
		} {
			for _, name := range []string{"Location", "Refresh", "Content-Location"} {
				corner.replies(func(w http.ResponseWriter, r *http.Request) {
					w.Header()[name] = []string{location}
					w.WriteHeader(status)
				})
				for _, path := range []string{"/v1/chat/completions", "/s15/v1/chat/completions"} {
					a := l.call(t, l.key, "POST", path, chat("lab/s15"))
					if a.StatusCode != status && a.StatusCode != 502 {
						t.Errorf("%d to %s became %s", status, location, a)
					}
					if got := a.Header.Get("Location") + a.Header.Get("Refresh") + a.Header.Get("Content-Location"); got != "" {
						t.Errorf("the client is led to %q by %q", got, location)
					}
				}
			}
		}
	}
	if n := calls.Load(); n != 0 {
		t.Errorf("%d redirects were followed", n)
	}
	if n := len(corner.take()); n != 6*16*3*2 {
		t.Errorf("%d calls at the provider, want one each", n)
	}
	corner.replies(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "/s15/v1/models?key=x&a=b")
		w.WriteHeader(302)
	})
	if got := l.call(t, l.key, "GET", "/s15/v1/models", "").Header.Get("Location"); got != "/s15/v1/models?a=b" {
		t.Errorf("a redirect within the provider became %q", got)
	}
}

// wire is a provider that keeps the bytes of every connection.
type wire struct {
	mu  sync.Mutex
	all []*strings.Builder
}

func (w *wire) serve(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		text := new(strings.Builder)
		w.mu.Lock()
		w.all = append(w.all, text)
		w.mu.Unlock()
		go w.answer(conn, text)
	}
}

func (w *wire) answer(conn net.Conn, text *strings.Builder) {
	defer conn.Close()
	in := bufio.NewReader(io.TeeReader(conn, writerFunc(func(b []byte) (int, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		return text.Write(b)
	})))
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		io.Copy(io.Discard, r.Body)
		fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(plainReply), plainReply)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// smuggling are request heads and bodies that front and back could cut in
// different places. KEY is the key, BODY a good body, LEN its length, MORE a
// second request without a key.
func smuggling() []string {
	const head = "POST /openai/v1/chat/completions HTTP/1.1\r\nHost: g\r\nAuthorization: KEY\r\nContent-Type: application/json\r\n"
	const good = "LENx\r\nBODY\r\n0\r\n\r\nMORE" // chunked
	vectors := []string{
		head + "Content-Length: LEN\r\nTransfer-Encoding: chunked\r\n\r\n" + good,
		head + "Transfer-Encoding: chunked\r\nContent-Length: LEN\r\n\r\n" + good,
		head + "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nMORE",
		head + "Content-Length: LEN\r\nContent-Length: LEN\r\n\r\nBODYMORE",
		head + "Content-Length: LEN\r\nContent-Length: 0\r\n\r\nBODYMORE",
		head + "Content-Length: 0\r\nContent-Length: LEN\r\n\r\nBODYMORE",
		head + "Content-Length: LEN, LEN\r\n\r\nBODYMORE",
		head + "Content-Length: +LEN\r\n\r\nBODYMORE", head + "Content-Length: -1\r\n\r\nBODYMORE", head + "Content-Length: 0x10\r\n\r\nBODYMORE", head + "Content-Length: LEN.0\r\n\r\nBODYMORE",
		head + "Content-Length: LEN \r\n\r\nBODYMORE", head + "Content-Length:\tLEN\r\n\r\nBODYMORE", head + "Content-Length : LEN\r\n\r\nBODYMORE", head + " Content-Length: LEN\r\n\r\nBODYMORE",
		head + "Content-Length: \r\n LEN\r\n\r\nBODYMORE", head + "Content-Length: 99999999999999999999\r\n\r\nBODYMORE", head + "content-length: LEN\r\nCONTENT-LENGTH: 1\r\n\r\nBODYMORE",
		head + "Content_Length: 1\r\nContent-Length: LEN\r\n\r\nBODYMORE", head + "Content-Length\x00: LEN\r\n\r\nBODYMORE", head + "X: y\nContent-Length: LEN\n\nBODYMORE", head + "X: y\rContent-Length: LEN\r\n\r\nBODYMORE",
	}
	for _, coding := range []string{"chunked", "Chunked", " chunked", "\tchunked", "chunked ", "chunked, identity", "identity, chunked", "xchunked", "chunked;x", "gzip, chunked", "chunked, chunked", "\"chunked\"", "\x0bchunked", "chunked\x00", "cow", ""} {
		vectors = append(vectors, head+"Transfer-Encoding:"+coding+"\r\n\r\n"+good, head+"Content-Length: LEN\r\nTransfer-Encoding:"+coding+"\r\n\r\nBODYMORE")
	}
	for _, name := range []string{"Transfer-Encoding :", "Transfer_Encoding:", "Transfer-Encoding\t:", " Transfer-Encoding:", "X: y\r\n\tTransfer-Encoding:", "Transfer-Encoding:\r\n ", "X: y\nTransfer-Encoding:"} {
		vectors = append(vectors, head+"Content-Length: LEN\r\n"+name+" chunked\r\n\r\nBODYMORE")
	}
	for _, body := range []string{"LENx;a=b\r\nBODY\r\n0\r\n\r\nMORE", "LENx;\nMORE\r\nBODY\r\n0\r\n\r\n", "LENx\nBODY\n0\n\nMORE", "0LENx\r\nBODY\r\n00\r\n\r\nMORE", "+LENx\r\nBODY\r\n0\r\n\r\nMORE", "0xLENx\r\nBODY\r\n0\r\n\r\nMORE",
		"LENx \r\nBODY\r\n0\r\n\r\nMORE", "LENx\r\nBODYX\r\n0\r\n\r\nMORE", "LENx\r\nBODY0\r\n\r\nMORE", "ffffffffffffffff1\r\nBODY\r\n0\r\n\r\nMORE", "-1\r\nBODY\r\n0\r\n\r\nMORE", "LENx\r\nBODY\r\n0\r\nContent-Length: 3\r\n\r\nMORE", "LENx\r\nBODY\r\n0\r\nMORE",
		"LENx\r\nBODY\r\n0;x\r\n\r\nMORE", "LENx" + strings.Repeat(";x", 9000) + "\r\nBODY\r\n0\r\n\r\nMORE"} {
		vectors = append(vectors, head+"Transfer-Encoding: chunked\r\n\r\n"+body)
	}
	return append(vectors,
		strings.Replace(head, "HTTP/1.1", "HTTP/1.0", 1)+"Transfer-Encoding: chunked\r\n\r\n"+good,
		strings.Replace(head, "HTTP/1.1", "HTTP/1.0", 1)+"Content-Length: LEN\r\nConnection: keep-alive\r\n\r\nBODYMORE",
		strings.Replace(head, " HTTP/1.1", "", 1)+"Content-Length: LEN\r\n\r\nBODYMORE", strings.Replace(head, "HTTP/1.1", "HTTP/2.0", 1)+"Content-Length: LEN\r\n\r\nBODYMORE", strings.Replace(head, "HTTP/1.1", "HTTP/1.1 HTTP/1.1", 1)+"Content-Length: LEN\r\n\r\nBODYMORE",
		strings.Replace(head, "POST", "GET", 1)+"Content-Length: LEN\r\n\r\nBODYMORE", strings.Replace(head, "POST", "PO ST", 1)+"Content-Length: LEN\r\n\r\nBODYMORE", strings.Replace(head, "Host: g", "Host: g\r\nHost: h", 1)+"Content-Length: LEN\r\n\r\nBODYMORE",
		head+"Content-Length: LEN\r\nExpect: 100-continue\r\n\r\nBODYMORE", head+"Content-Length: LEN\r\nExpect: x\r\n\r\nBODYMORE", head+"Upgrade: h2c\r\nConnection: Upgrade\r\nContent-Length: LEN\r\n\r\nBODYMORE",
		head+"Content-Length: LEN\r\n\r\nBODY\r\n\r\nMORE", head+"\r\nMORE", "\r\n\r\n"+head+"Content-Length: LEN\r\n\r\nBODYMORE", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nMORE", "CONNECT openai:80 HTTP/1.1\r\nHost: openai:80\r\n\r\nMORE")
}

// TestRequestSmuggling sends requests that front and back of a proxy could
// cut in different places, each with a second request behind it. The provider
// sees at most the first, in a framing of the gateway's own.
func TestRequestSmuggling(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	upstream := &wire{}
	go upstream.serve(listener)
	g := testkit.StartGateway(t, testkit.GatewayOptions{Upstream: "http://" + listener.Addr().String()})
	l := &lab{Gateway: g}
	l.key, _ = g.NewKey(g.NewClient("smuggler"))
	body := chat("m")
	sent := 0
	for _, vector := range smuggling() {
		vector = strings.NewReplacer("KEY", l.key, "BODY", body, "LENx", fmt.Sprintf("%x", len(body)), "LEN", fmt.Sprint(len(body)),
			"MORE", "POST /openai/v1/smuggled HTTP/1.1\r\nHost: g\r\nContent-Length: 2\r\n\r\n{}").Replace(vector)
		l.raw(t, vector)
		sent++
	}
	if a := l.raw(t, l.request("POST", "/openai/v1/chat/completions", body)); a == nil || a.StatusCode != 200 {
		t.Errorf("an honest call: %v", a)
	}
	g.Stop()
	upstream.mu.Lock()
	defer upstream.mu.Unlock()
	requests := 0
	for _, text := range upstream.all {
		requests += strings.Count(text.String(), " HTTP/1.1\r\n")
		if strings.Contains(text.String(), "smuggled") || strings.Contains(text.String(), "Transfer-Encoding") {
			t.Errorf("the provider got %q", text)
		}
		for request := range strings.SplitSeq(strings.TrimPrefix(text.String(), "POST "), "POST ") {
			head, got, _ := strings.Cut(request, "\r\n\r\n")
			if request != "" && (got != "" && got != body || strings.Count(head+"\r\n", fmt.Sprintf("\r\nContent-Length: %d\r\n", len(got))) != 1) {
				t.Errorf("the provider got %q", request)
			}
		}
	}
	if requests < 2 || requests > sent+1 {
		t.Errorf("%d requests at the provider for %d vectors", requests, sent)
	}
	t.Logf("%d vectors, %d calls forwarded", sent, requests-1)
}
