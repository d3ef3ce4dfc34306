package provider

import (
	"bytes"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"modelgate"
)

const clientKey = "gw_live_0123456789abcdef0123456789abcdef0123456789abcdef"

func setup(t testing.TB, cfg Config) *Provider {
	t.Helper()
	if cfg.Name == "" {
		cfg.Name = "p"
	}
	if cfg.BaseURL == "" {
		cfg.BaseURL = "https://api.example.com/base"
	}
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func out(t testing.TB, p *Provider, call Call) *http.Request {
	t.Helper()
	a, err := p.Outbound(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	return a.Request
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	ok := Config{Name: "p", Format: "openai", BaseURL: "https://api.example.com"}
	tests := []struct {
		name string
		edit func(*Config)
	}{
		{"unknown format", func(c *Config) { c.Format = "x" }},
		{"no host", func(c *Config) { c.BaseURL = "https:///v1" }},
		{"scheme", func(c *Config) { c.BaseURL = "ftp://x" }},
		{"query", func(c *Config) { c.BaseURL = "https://x/?a=b" }},
		{"user", func(c *Config) { c.BaseURL = "https://u:p@x/" }},
		{"metadata address", func(c *Config) { c.BaseURL = "http://169.254.169.254/" }},
		{"metadata address in IPv6", func(c *Config) { c.BaseURL = "http://[::ffff:169.254.169.254]/" }},
		{"metadata name", func(c *Config) { c.BaseURL = "http://Metadata.Google.Internal./" }},
		{"unknown door", func(c *Config) { c.Paths = map[string]string{"paint": "/x"} }},
		{"door path with a space", func(c *Config) { c.Paths = map[string]string{"chat": "/x y"} }},
		{"door query with a line", func(c *Config) { c.Paths = map[string]string{"chat": "/x?a=b\r\nX: y"} }},
		{"key in the framing", func(c *Config) { c.Auth = &Auth{Header: "Transfer-Encoding"} }},
		{"key in no header", func(c *Config) { c.Auth = &Auth{Header: "X: y"} }},
		{"relative door path", func(c *Config) { c.Paths = map[string]string{"chat": "x"} }},
		{"bad pattern", func(c *Config) { c.Allow = []string{"/v1/files"} }},
		{"hop header", func(c *Config) { c.Headers = map[string]string{"transfer-encoding": "chunked"} }},
		{"host header", func(c *Config) { c.Headers = map[string]string{"Host": "x"} }},
		{"split header", func(c *Config) { c.Headers = map[string]string{"X-A": "a\r\nX-B: b"} }},
		{"split credential", func(c *Config) { c.Credentials = []string{"a\nb"} }},
		{"two sources", func(c *Config) { c.Credentials, c.CredentialFile = []string{"a"}, "/b" }},
		{"missing CA file", func(c *Config) { c.CAFile = "/does/not/exist" }},
		{"disconnect", func(c *Config) { c.OnDisconnect = "wait" }},
	}
	if _, err := New(ok); err != nil {
		t.Fatal(err)
	}
	for _, test := range tests {
		cfg := ok
		test.edit(&cfg)
		if _, err := New(cfg); err == nil {
			t.Errorf("%s: New accepted it", test.name)
		}
	}
}

func TestOutboundTarget(t *testing.T) {
	t.Parallel()
	p := setup(t, Config{Format: "openai", Credentials: []string{"sk"}})
	tests := []struct{ path, query, want string }{
		{"/v1/chat/completions", "", "https://api.example.com/base/v1/chat/completions"},
		{"/v1/models/a%20b:c", "x=1&beta=true", "https://api.example.com/base/v1/models/a%20b:c?x=1&beta=true"},
		{"/v1/x", "alt=sse&key=secret&a=%20b", "https://api.example.com/base/v1/x?alt=sse&a=%20b"},
		{"/v1/x", "API%5Fkey=s&Key=t&access_token=u&monkey=v", "https://api.example.com/base/v1/x?monkey=v"},
	}
	for _, test := range tests {
		req := out(t, p, Call{Method: "POST", Path: test.path, Query: test.query, Body: []byte("{}")})
		if got := req.URL.String(); got != test.want || req.Host != "api.example.com" {
			t.Errorf("%s?%s went to %s (Host %s), want %s", test.path, test.query, got, req.Host, test.want)
		}
		if req.GetBody != nil || req.ContentLength != 2 {
			t.Errorf("body can be replayed, or has length %d", req.ContentLength)
		}
	}
	for _, path := range []string{"", "v1", "/v1/../x", "/v1//x", "/v1/x?y", "/v1/%2e%2e/x", "//evil.example/x"} {
		if _, err := p.Outbound(t.Context(), Call{Method: "GET", Path: path}); modelgate.KindOf(err) != modelgate.BadRequest {
			t.Errorf("path %q: %v, want a bad request", path, err)
		}
	}
}

// seenBy runs a provider against a server and returns what that was sent.
func seenBy(t *testing.T, cfg Config, call Call) (*http.Request, string) {
	t.Helper()
	var got *http.Request
	var body string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got, body = r, string(b)
	}))
	defer server.Close()
	cfg.BaseURL = server.URL
	p := setup(t, cfg)
	a, err := p.Outbound(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	resp, _, err := p.Send(a)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return got, body
}

// A client's key never reaches a provider, whatever it travels in; the
// provider's credential does, once.
func TestNoLeak(t *testing.T) {
	t.Parallel()
	names := []string{
		"Authorization", "Proxy-Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "Xi-Api-Key", "X-Key", "Apikey", "X-Auth-Token",
		"X-Access-Token", "Cookie", "Cookie2", "X-Amz-Security-Token", "X-Forwarded-Authorization", "X-Original-Authorization", "Authentication",
		"Www-Authenticate", "X-Functions-Key", "Ocp-Apim-Subscription-Key", "Private-Token", "X-Token", "Token", "X-Secret", "Idempotency-Key",
		"X-Portkey-Api-Key", "Helicone-Auth", "Cf-Access-Client-Secret", "X-Forwarded-For", "Forwarded", "X-Real-Ip", "X-Http-Method-Override",
		"Openai-Organization", "Openai-Project", "Anthropic-Workspace-Id", "X-Amz-Target", "Referer", "Origin", "From", "X-Request-Id", "Traceparent",
	}
	for _, format := range Formats() {
		t.Run(format.Name, func(t *testing.T) {
			t.Parallel()
			call := Call{Method: "POST", Path: "/v1/x", Query: "key=" + clientKey + "&alt=sse&api_key=" + clientKey, Header: http.Header{}, Body: []byte(`{"a":1}`)}
			for _, name := range names {
				call.Header[name] = []string{"Bearer " + clientKey}
			}
			call.Header.Set("Connection", "Authorization, X-Api-Key, Api-Key, X-Goog-Api-Key, X-Stainless-Lang")
			call.Header.Set("X-Stainless-Lang", "js")
			call.Header.Set("Te", "trailers")
			got, body := seenBy(t, Config{Format: format.Name, Credentials: []string{"provider-secret"}}, call)
			var dump bytes.Buffer
			got.Header.Write(&dump)
			text := got.URL.String() + "\n" + dump.String()
			if strings.Contains(text, keyMark) {
				t.Errorf("the client's key left:\n%s", text)
			}
			if n := strings.Count(text, "provider-secret"); n != 1 {
				t.Errorf("the credential left %d times:\n%s", n, text)
			}
			for name := range got.Header {
				switch name {
				case "Accept-Encoding", "Content-Length", format.Auth.Header:
				default:
					t.Errorf("header %s left", name)
				}
			}
			if got.Header.Get("Accept-Encoding") != "identity" || body != `{"a":1}` || got.URL.RawQuery != "alt=sse" {
				t.Errorf("encoding %q, body %q, query %q", got.Header.Get("Accept-Encoding"), body, got.URL.RawQuery)
			}
		})
	}
}

func TestGuard(t *testing.T) {
	t.Parallel()
	p := setup(t, Config{Format: "openai", Credentials: []string{"sk"}})
	calls := []Call{
		{Method: "GET", Path: "/v1/" + clientKey},
		{Method: "GET", Path: "/v1/gw%5Flive%5Fx"},
		{Method: "GET", Path: "/v1/x", Query: "user=" + clientKey},
		{Method: "GET", Path: "/v1/x", Query: "user=gw%5flive%5fx"},
		{Method: "GET", Path: "/v1/x", Header: http.Header{"User-Agent": {clientKey}}},
		{Method: "GET", Path: "/v1/x", Header: http.Header{"X-Stainless-" + clientKey: {"a"}}},
	}
	for _, call := range calls {
		if _, err := p.Outbound(t.Context(), call); modelgate.KindOf(err) != modelgate.BadRequest {
			t.Errorf("%+v: %v, want a bad request", call, err)
		}
	}
}

func TestHeadersThatPass(t *testing.T) {
	t.Parallel()
	p := setup(t, Config{Format: "dashscope", Credentials: []string{"sk"}, Headers: map[string]string{"X-Team": "a", "accept": "b"}})
	req := out(t, p, Call{Method: "POST", Path: "/x", Set: map[string]string{"X-Dashscope-Async": "enable"}, Header: http.Header{
		"Content-Type": {"application/json"}, "Accept": {"x"}, "User-Agent": {"OpenAI/JS 7"}, "X-Stainless-Lang": {"js"},
		"Anthropic-Version": {"2026-10-21"}, "Anthropic-Beta": {"a", "b"}, "X-Dashscope-Sse": {"enable"}, "X-Other": {"no"},
	}})
	want := http.Header{
		"Content-Type": {"application/json"}, "Accept": {"b"}, "User-Agent": {"OpenAI/JS 7"}, "X-Stainless-Lang": {"js"},
		"Anthropic-Version": {"2026-10-21"}, "Anthropic-Beta": {"a", "b"}, "X-Dashscope-Sse": {"enable"}, "X-Dashscope-Async": {"enable"},
		"X-Team": {"a"}, "Accept-Encoding": {"identity"}, "Authorization": {"Bearer sk"},
	}
	if diff := cmp.Diff(want, req.Header); diff != "" {
		t.Errorf("headers (-want +got)\n%s", diff)
	}
}

func TestAuthStyles(t *testing.T) {
	t.Parallel()
	old := http.Header{"Anthropic-Version": {"2023-06-01"}}
	tests := []struct {
		name         string
		cfg          Config
		header       http.Header
		auth         *Auth
		field, value string
		query        string
	}{
		{"bearer", Config{Format: "openai"}, nil, nil, "Authorization", "Bearer sk", ""},
		{"older version", Config{Format: "anthropic"}, old, nil, "X-Api-Key", "sk", ""},
		{"newer version", Config{Format: "anthropic"}, http.Header{"Anthropic-Version": {"2026-10-21"}}, nil, "Authorization", "Bearer sk", ""},
		{"no version", Config{Format: "anthropic"}, nil, nil, "Authorization", "Bearer sk", ""},
		{"api-key", Config{Format: "azure-openai"}, nil, nil, "Api-Key", "sk", ""},
		{"own prefix", Config{Format: "fal"}, nil, nil, "Authorization", "Key sk", ""},
		{"of the door", Config{Format: "gemini"}, nil, &Auth{Header: "Authorization", Prefix: "Bearer "}, "Authorization", "Bearer sk", ""},
		{"configured", Config{Format: "anthropic", Auth: &Auth{Header: "X-Key"}}, old, nil, "X-Key", "sk", ""},
		{"query", Config{Format: "gemini", Auth: &Auth{Query: "key"}}, nil, nil, "", "", "a=1&key=sk"},
		{"none", Config{Format: "openai", Auth: &Auth{}}, nil, nil, "", "", "a=1"},
	}
	for _, test := range tests {
		test.cfg.Credentials = []string{"sk"}
		req := out(t, setup(t, test.cfg), Call{Method: "POST", Path: "/x", Query: "a=1", Header: test.header, Auth: test.auth})
		if test.query == "" {
			test.query = "a=1"
		}
		carried := 0
		for name, values := range req.Header {
			if strings.Contains(values[0], "sk") {
				carried++
				if name != test.field || values[0] != test.value {
					t.Errorf("%s: %s: %s, want %s: %s", test.name, name, values[0], test.field, test.value)
				}
			}
		}
		if want := min(len(test.field), 1); carried != want || req.URL.RawQuery != test.query {
			t.Errorf("%s: credential in %d headers, query %q, want %d, %q", test.name, carried, req.URL.RawQuery, want, test.query)
		}
	}
}

// clock is a time that a test moves.
type clock struct{ nano atomic.Int64 }

func (c *clock) now() time.Time       { return time.Unix(1_790_000_000, c.nano.Load()) }
func (c *clock) pass(d time.Duration) { c.nano.Add(int64(d)) }

func TestCredentialsTakeTurnsAndRest(t *testing.T) {
	t.Parallel()
	var refuse atomic.Pointer[string]
	none := ""
	refuse.Store(&none)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer "+*refuse.Load() {
			w.Header().Set("Retry-After", "60")
			w.WriteHeader(429)
		}
		io.WriteString(w, r.Header.Get("Authorization"))
	}))
	defer server.Close()
	var c clock
	p := setup(t, Config{Format: "openai", BaseURL: server.URL, Credentials: []string{"a", "b", "c"}, Now: c.now})
	send := func() string {
		a, err := p.Outbound(t.Context(), Call{Method: "GET", Path: "/x"})
		if err != nil {
			t.Fatal(err)
		}
		resp, _, err := p.Send(a)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return strings.TrimPrefix(string(b), "Bearer ")
	}
	round := func(n int) (s string) {
		for range n {
			s += send()
		}
		return s
	}
	if got := round(6); got != "abcabc" {
		t.Errorf("turns %s, want abcabc", got)
	}
	b := "b"
	refuse.Store(&b)
	if got := round(3); strings.Count(got, "b") != 1 {
		t.Errorf("turns %s, want b once", got)
	}
	c.pass(59 * time.Second)
	if got := round(6); strings.Contains(got, "b") {
		t.Errorf("turns %s while b rests", got)
	}
	refuse.Store(&none)
	c.pass(2 * time.Second)
	if got := round(6); !strings.Contains(got, "b") {
		t.Errorf("turns %s after b's rest, want b among them", got)
	}
}

func TestCredentialOfAJob(t *testing.T) {
	t.Parallel()
	p := setup(t, Config{Format: "openai", Credentials: []string{"new", "newer"}, PreviousCredentials: []string{"old"}})
	before := setup(t, Config{Format: "openai", Credentials: []string{"old"}})
	a, err := before.Outbound(t.Context(), Call{Method: "GET", Path: "/x"})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		req := out(t, p, Call{Method: "GET", Path: "/x", Credential: a.Credential()})
		if got := req.Header.Get("Authorization"); got != "Bearer old" {
			t.Errorf("job polled with %q, want the credential it was made with", got)
		}
		if got := out(t, p, Call{Method: "GET", Path: "/x"}).Header.Get("Authorization"); got == "Bearer old" {
			t.Error("a previous credential was used for a new call")
		}
	}
	if _, err := p.Outbound(t.Context(), Call{Method: "GET", Path: "/x", Credential: "0011223344556677"}); !errors.Is(err, modelgate.ErrCredentialGone) {
		t.Errorf("unknown credential: %v, want %v", err, modelgate.ErrCredentialGone)
	}
	// One that is used later than these became known is another instance's.
	for _, at := range []struct {
		made time.Time
		want error
	}{{time.Now().Add(-time.Hour), modelgate.ErrCredentialGone}, {time.Now().Add(time.Hour), modelgate.ErrCredentialNewer}} {
		if _, err := p.Outbound(t.Context(), Call{Method: "GET", Path: "/x", Credential: "0011223344556677", MadeAt: at.made}); !errors.Is(err, at.want) {
			t.Errorf("unknown credential of a job made at %v: %v, want %v", at.made, err, at.want)
		}
	}
	made := time.Now()
	p.InUse()
	if _, err := p.Outbound(t.Context(), Call{Method: "GET", Path: "/x", Credential: "0011223344556677", MadeAt: made}); !errors.Is(err, modelgate.ErrCredentialGone) {
		t.Errorf("unknown credential of a job made before these were in use: %v", err)
	}
	if strings.Contains(a.Credential(), "old") || len(a.Credential()) != 16 {
		t.Errorf("fingerprint %q", a.Credential())
	}
}

func TestCredentialFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "secret")
	var c clock
	p := setup(t, Config{Format: "openai", CredentialFile: file, Now: c.now})
	ask := func() (string, error) {
		a, err := p.Outbound(t.Context(), Call{Method: "GET", Path: "/x"})
		if err != nil {
			return "", err
		}
		return a.Request.Header.Get("Authorization"), nil
	}
	write := func(text string, at int64) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, time.Unix(at, 0), time.Unix(at, 0)); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(want string) {
		t.Helper()
		if got, err := ask(); got != want || (want == "") != errors.Is(err, modelgate.ErrCredential) {
			t.Errorf("credential %q, %v, want %q", got, err, want)
		}
	}
	expect("")
	write("one\n", 100)
	expect("Bearer one")
	write("two", 200)
	expect("Bearer one")
	c.pass(time.Second)
	expect("Bearer two")
	write(" \n", 300)
	c.pass(time.Second)
	expect("")
	write("a\nb", 400)
	expect("")
	write("three", 500)
	expect("Bearer three")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	c.pass(time.Second)
	expect("")
}

func TestNoCredential(t *testing.T) {
	t.Parallel()
	p := setup(t, Config{Format: "openai", Credentials: []string{""}})
	if _, err := p.Outbound(t.Context(), Call{Method: "GET", Path: "/x"}); !errors.Is(err, modelgate.ErrCredential) {
		t.Errorf("Outbound = %v, want %v", err, modelgate.ErrCredential)
	}
	local := setup(t, Config{Format: "ollama"})
	if got := out(t, local, Call{Method: "GET", Path: "/x"}).Header["Authorization"]; got != nil {
		t.Errorf("a call without credential carries %q", got)
	}
}

// Redirects are answers: nothing is sent to where they lead.
func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	var hits atomic.Int32
	canary := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer canary.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", canary.URL+"/steal")
			w.WriteHeader(status)
		}))
		p := setup(t, Config{Format: "openai", BaseURL: server.URL, Credentials: []string{"sk"}})
		a, err := p.Outbound(t.Context(), Call{Method: "POST", Path: "/v1/x", Body: []byte("{}")})
		if err != nil {
			t.Fatal(err)
		}
		resp, _, err := p.Send(a)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		dst := http.Header{}
		p.ResponseHeaders(dst, resp.Header)
		if resp.StatusCode != status || dst.Get("Location") != "" {
			t.Errorf("status %d, Location %q, want %d and none", resp.StatusCode, dst.Get("Location"), status)
		}
		server.Close()
	}
	if hits.Load() != 0 {
		t.Errorf("%d redirects were followed", hits.Load())
	}
}

// A call that reached the provider is not made again when its connection
// dies, even on a connection that was idle before.
func TestPostIsNotSentTwice(t *testing.T) {
	t.Parallel()
	var hits atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if hits.Add(1) == 1 {
			return
		}
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			conn.Close()
		}
	}))
	defer server.Close()
	p := setup(t, Config{Format: "openai", BaseURL: server.URL, Credentials: []string{"sk"}})
	for i, wantErr := range []bool{false, true} {
		a, err := p.Outbound(t.Context(), Call{Method: "POST", Path: "/v1/x", Body: []byte("{}"), Header: http.Header{"Idempotency-Key": {"k"}}})
		if err != nil {
			t.Fatal(err)
		}
		resp, _, err := p.Send(a)
		if (err != nil) != wantErr {
			t.Errorf("call %d: %v", i, err)
		}
		if err == nil {
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	}
	if hits.Load() != 2 {
		t.Errorf("%d calls arrived, want 2", hits.Load())
	}
}

func TestResponseHeaders(t *testing.T) {
	t.Parallel()
	p := setup(t, Config{Name: "one", Format: "openai"})
	src := http.Header{
		"Content-Type": {"application/json"}, "X-Request-Id": {"r"}, "Request-Id": {"q"}, "Retry-After": {"3"}, "Openai-Processing-Ms": {"9"},
		"Openai-Poll-After-Ms": {"5"}, "Content-Length": {"2"}, "Cache-Control": {"no-cache"}, "X-Multi": {"a", "b"},
		"Openai-Organization": {"org"}, "Openai-Project": {"proj"}, "Anthropic-Organization-Id": {"org"}, "Set-Cookie": {"c=1"},
		"X-Ratelimit-Remaining-Tokens": {"1"}, "Anthropic-Ratelimit-Tokens-Reset": {"1"}, "Server": {"cloudflare"}, "Alt-Svc": {"h3"},
		"Via": {"1.1 x"}, "Cf-Ray": {"1"}, "Strict-Transport-Security": {"max-age=1"}, "Access-Control-Allow-Origin": {"*"},
		"Connection": {"close, X-Hop"}, "X-Hop": {"1"}, "Keep-Alive": {"1"}, "Transfer-Encoding": {"chunked"}, "Trailer": {"X"},
		"Upgrade": {"h2c"}, "X-Gateway-Request-Id": {"forged"},
	}
	want := http.Header{
		"Content-Type": {"application/json"}, "X-Request-Id": {"r"}, "Request-Id": {"q"}, "Retry-After": {"3"}, "Openai-Processing-Ms": {"9"},
		"Openai-Poll-After-Ms": {"5"}, "Content-Length": {"2"}, "Cache-Control": {"no-cache"}, "X-Multi": {"a", "b"},
	}
	dst := http.Header{}
	p.ResponseHeaders(dst, src)
	if diff := cmp.Diff(want, dst); diff != "" {
		t.Errorf("headers (-want +got)\n%s", diff)
	}
	locations := map[string]string{
		"https://api.example.com/base/v1/y?a=1&key=s": "/one/v1/y?a=1",
		"/base/v1/y":                      "/one/v1/y",
		"https://api.example.com/other":   "",
		"https://evil.example/base/v1/y":  "",
		"//evil.example/base/v1/y":        "",
		"http://api.example.com/base/v1":  "",
		"https://u@api.example.com/base/": "",
		"javascript:alert(1)":             "",
		"v1/y":                            "",
		"/base//evil.example":             "",
		"/base/../x":                      "",
	}
	for target, want := range locations {
		dst := http.Header{}
		p.ResponseHeaders(dst, http.Header{"Location": {target}})
		if got := dst.Get("Location"); got != want {
			t.Errorf("Location %s became %q, want %q", target, got, want)
		}
	}
}

func TestMetadataServicesAreRefused(t *testing.T) {
	t.Parallel()
	for address, refused := range map[string]bool{
		"169.254.169.254:80": true, "[fd00:ec2::254]:80": true, "[::ffff:169.254.169.254]:80": true, "100.100.100.200:443": true,
		"[fd00:ec2::254%eth0]:80": true, "169.254.170.2:80": true, "10.0.0.1:80": false, "127.0.0.1:80": false, "[::1]:80": false,
	} {
		if err := RefuseMetadata("tcp", address, nil); (err != nil) != refused {
			t.Errorf("connecting to %s: %v, want refused %v", address, err, refused)
		}
	}
	for _, cfg := range []Config{{}, {HTTP2: true}, {Standard: true}} {
		for _, scheme := range []string{"http", "https"} {
			u := &url.URL{Scheme: scheme, Host: "169.254.169.254", Path: "/x"}
			tr, err := newTransportTo(u, &cfg, Timeouts{}.withDefaults())
			if err != nil {
				t.Fatal(err)
			}
			a := &Attempt{Request: (&http.Request{Method: "GET", URL: u, Host: u.Host, Header: http.Header{}}).WithContext(t.Context()), target: u.Path}
			if _, sent, err := tr.roundTrip(a); !errors.Is(err, errMetadata) || sent {
				t.Errorf("%s: calling the metadata service: sent %v, %v", scheme, sent, err)
			}
			tr.close()
		}
	}
}

func TestPrivateAddressesAreRefused(t *testing.T) {
	t.Parallel()
	for address, refused := range map[string]bool{
		"93.184.216.34:443": false, "[2606:2800:220:1::1]:443": false, "[::ffff:93.184.216.34]:443": false, "172.32.0.1:443": false,
		"127.0.0.1:443": true, "10.1.2.3:443": true, "172.16.0.1:443": true, "192.168.1.1:443": true, "169.254.169.254:443": true,
		"169.254.1.1:443": true, "100.64.0.1:443": true, "0.0.0.0:443": true, "0.1.2.3:443": true, "255.255.255.255:443": true, "224.0.0.1:443": true,
		"192.0.0.8:443": true, "198.18.0.1:443": true, "[::]:443": true, "[::1]:443": true, "[fe80::1%eth0]:443": true, "[fc00::1]:443": true,
		"[fec0::1]:443": true, "[::ffff:10.0.0.1]:443": true, "[::10.0.0.1]:443": true, "[64:ff9b::a00:1]:443": true, "[2002:a00:1::]:443": true,
		"[2001:0:a00:1::]:443": true, "localhost:443": true,
	} {
		if err := RefusePrivate("tcp", address, nil); (err != nil) != refused {
			t.Errorf("connecting to %s: %v, want refused %v", address, err, refused)
		}
	}
}

// caFile is a server's certificate as a ca_file.
func caFile(t testing.TB, server *httptest.Server) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(file, block, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestCAFile(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	for file, works := range map[string]bool{"": false, caFile(t, server): true} {
		p := setup(t, Config{Format: "openai", BaseURL: server.URL, Credentials: []string{"sk"}, CAFile: file})
		a, err := p.Outbound(t.Context(), Call{Method: "GET", Path: "/x"})
		if err != nil {
			t.Fatal(err)
		}
		resp, _, err := p.Send(a)
		if (err == nil) != works {
			t.Errorf("with ca_file %q: %v", file, err)
		}
		if err == nil {
			resp.Body.Close()
		}
	}
}

func TestForeignHostGetsNoCredential(t *testing.T) {
	t.Parallel()
	p := setup(t, Config{Format: "openai", Credentials: []string{"sk"}})
	used, err := p.secrets.Pick()
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"https://evil.example/x", "http://api.example.com/x", "https://api.example.com:444/x"} {
		u, err := url.Parse(target)
		if err != nil {
			t.Fatal(err)
		}
		a := &Attempt{Request: &http.Request{URL: u, Header: http.Header{}}, used: used}
		if err := p.authenticate(a, &Call{}); err == nil || len(a.Request.Header) > 0 {
			t.Errorf("%s: %v, headers %v", target, err, a.Request.Header)
		}
	}
}

func BenchmarkOutbound(b *testing.B) {
	p := setup(b, Config{Format: "openai", Credentials: []string{"sk-0123456789"}})
	call := Call{Method: "POST", Path: "/v1/chat/completions", Body: []byte("{}"), Header: http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json"}, "User-Agent": {"OpenAI/JS 7.55.0"}, "Authorization": {"Bearer x"},
		"X-Stainless-Lang": {"js"}, "X-Stainless-Package-Version": {"7"}, "X-Stainless-Os": {"Linux"}, "X-Stainless-Retry-Count": {"0"}, "Accept-Encoding": {"gzip"},
	}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Outbound(b.Context(), call); err != nil {
			b.Fatal(err)
		}
	}
}
