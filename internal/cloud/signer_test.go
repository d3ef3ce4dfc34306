package cloud

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"modelgate/internal/provider"
	stand "modelgate/test/testkit/cloud"
)

// judged is a provider that verifies every signature over the bytes that came.
func judged(t testing.TB, j *stand.Judge) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = j.Verify(r, r.RequestURI, body)
		}
		if err != nil {
			w.Header().Set("X-Amzn-Errortype", "InvalidSignatureException")
			http.Error(w, err.Error(), http.StatusForbidden)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

func signing(c Config) Config {
	c.AWS = &AWS{Region: "eu-central-1", Service: "bedrock", AccessKeyID: "AKID", SecretAccessKey: "canary-secret", Duration: time.Hour}
	return c
}

// What leaves is what was signed, whatever stands in its path and query, and
// whatever a client tries to add.
func TestSignedCalls(t *testing.T) {
	t.Parallel()
	server := judged(t, &stand.Judge{Secrets: map[string]string{"AKID": "canary-secret"}, Region: "eu-central-1", Service: "bedrock"})
	identity, err := New(signing(Config{}), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, standard := range []bool{false, true} {
		p, err := provider.New(provider.Config{Name: "p", Format: "generic", BaseURL: server.URL, Identity: identity, Standard: standard})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		header := http.Header{"Content-Type": {"application/json"}, "X-Forwarded-For": {"1.2.3.4"}, "X-Amz-Date": {"20200101T000000Z"},
			"X-Amz-Security-Token": {"mine"}, "Authorization": {"AWS4-HMAC-SHA256 Credential=x"}, "User-Agent": {"a  b"}}
		for _, path := range []string{"/model/anthropic.claude:0/converse", "/model/anthropic.claude%3A0/converse", "/a%20b/c", "/%C3%A9/~x", "/v1/m@2026/x", "/a+b,c=d"} {
			for _, query := range []string{"", "b=2&a=1", "q=a%20b&q=a+b", "x=%C3%A9&y", "z=a/b:c"} {
				a, err := p.Outbound(t.Context(), provider.Call{Method: http.MethodPost, Path: path, Query: query, Header: header, Body: []byte(`{"a":"é"}`)})
				if err != nil {
					t.Fatal(err)
				}
				resp, _, err := p.Send(a)
				if err != nil {
					t.Fatal(err)
				}
				text, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				if resp.StatusCode != http.StatusOK {
					t.Errorf("%s?%s: %d %s", path, query, resp.StatusCode, text)
				}
			}
		}
		for _, query := range []string{"X-Amz-Signature=1", "a=1&x%2Damz-date=2"} {
			if _, err := p.Outbound(t.Context(), provider.Call{Method: http.MethodGet, Path: "/", Query: query}); err == nil || !strings.Contains(err.Error(), "x-amz-") {
				t.Errorf("query %s: %v", query, err)
			}
		}
	}
}

// FuzzSignedTarget has the judge verify what leaves for any path, query and value of a
// header.
func FuzzSignedTarget(f *testing.F) {
	for _, target := range signedTargets(200) {
		path, query, _ := strings.Cut(target, "?")
		f.Add(path, query, "a  b", []byte("{}"))
	}
	server := judged(f, &stand.Judge{Secrets: map[string]string{"AKID": "canary-secret"}, Region: "eu-central-1", Service: "bedrock"})
	identity, err := New(signing(Config{}), slog.New(slog.DiscardHandler))
	if err != nil {
		f.Fatal(err)
	}
	p, err := provider.New(provider.Config{Name: "p", Format: "generic", BaseURL: server.URL, Identity: identity})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(p.Close)
	f.Fuzz(func(t *testing.T, path, query, value string, body []byte) {
		header := http.Header{"Content-Type": {"application/json"}, "X-Amzn-Bedrock-Trace": {value}}
		a, err := p.Outbound(t.Context(), provider.Call{Method: http.MethodPost, Path: "/" + strings.TrimLeft(path, "/"), Query: query, Header: header, Body: body})
		if err != nil {
			return // such a request does not leave
		}
		resp, _, err := p.Send(a)
		if err != nil {
			return // nor does this one
		}
		defer resp.Body.Close()
		if text, _ := io.ReadAll(resp.Body); resp.StatusCode == http.StatusForbidden {
			t.Errorf("%q?%q: %s", path, query, text)
		}
	})
}

// signedTargets are paths and queries of all characters that stand in them, as they
// are and escaped.
func signedTargets(n int) (targets []string) {
	random := rand.New(rand.NewPCG(1, 2))
	parts := []string{"model", "anthropic.claude-v1:0", "anthropic.claude-v1%3A0", "a%20b", "%C3%A9", "m@2026", "a+b", "a,b;c=d", "~x", "(a)", "x*!'", "$&", "%2F", "%25", "arn%3Aaws%3Ab%2Fc", "_-.", "%E2%82%AC"}
	pairs := []string{"a=1", "b", "q=a%20b", "q=a+b", "x=%C3%A9", "z=a/b:c", "e=", "w=%2B%26", "q=2", "t=~_-."}
	for range n {
		target := ""
		for range 1 + random.IntN(4) {
			target += "/" + parts[random.IntN(len(parts))]
		}
		separator := "?"
		for range random.IntN(4) {
			target += separator + pairs[random.IntN(len(pairs))]
			separator = "&"
		}
		targets = append(targets, target)
	}
	return targets
}

// A provider that refuses the signature has the credential fetched again; the reply
// is the client's.
func TestRefusedSignature(t *testing.T) {
	t.Parallel()
	server := judged(t, &stand.Judge{Secrets: map[string]string{"AKID": "another"}, Region: "eu-central-1", Service: "bedrock"})
	identity, err := New(signing(Config{}), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	p, err := provider.New(provider.Config{Name: "p", Format: "generic", BaseURL: server.URL, Identity: identity})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	a, err := p.Outbound(t.Context(), provider.Call{Method: http.MethodPost, Path: "/"})
	if err != nil {
		t.Fatal(err)
	}
	resp, _, err := p.Send(a)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden || identity.tokens.rejected.Load() != 1 {
		t.Errorf("status %d, %d refusals", resp.StatusCode, identity.tokens.rejected.Load())
	}
}

// A reply refuses the credential, or only the model.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		kind   string
		want   bool
	}{
		{401, "", true},
		{403, "InvalidSignatureException", true},
		{403, "ExpiredTokenException:http://internal.amazon.com/coral/com.amazon.coral.service/", true},
		{403, "com.amazon.coral.service#UnrecognizedClientException", true},
		{403, "com.amazon.coral.service#InvalidSignatureException:http://x/#y", true},
		{403, "AccessDeniedException:http://internal.amazon.com/coral/com.amazon.bedrock/", false},
		{403, "", false},
		{400, "InvalidSignatureException", false},
		{200, "", false},
	} {
		if got := refused(&http.Response{StatusCode: c.status, Header: http.Header{"X-Amzn-Errortype": {c.kind}}}); got != c.want {
			t.Errorf("%d %s: %v, want %v", c.status, c.kind, got, c.want)
		}
	}
}

// A reload keeps the tokens of identities that stay as they are.
func TestSetKeepsIdentities(t *testing.T) {
	t.Parallel()
	s := NewSet(slog.New(slog.DiscardHandler))
	defer s.Close()
	next := func(configs ...Config) *Next {
		n, err := s.Next(configs)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	first := next(signing(Config{Provider: "a"}), signing(Config{Provider: "b"}))
	first.Use()
	changed := signing(Config{Provider: "b"})
	changed.AWS.SecretAccessKey = "new"
	second := next(signing(Config{Provider: "a"}), changed)
	if second.Of("a") != first.Of("a") || second.Of("b") == first.Of("b") || second.Of("c") != nil {
		t.Error("the wrong identities stay")
	}
	if second.Of("b").Fingerprint() != first.Of("b").Fingerprint() {
		t.Error("a new secret changes the fingerprint, so jobs would be lost")
	}
}

// A call to a provider with 1 KB of body, signed and with a key. A call through the
// gateway costs more on both sides, so the ratio of two such calls is smaller.
func BenchmarkCall(b *testing.B) {
	body := []byte(strings.Repeat("x", 1024))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = w.Write(body)
	}))
	b.Cleanup(server.Close)
	for _, c := range []struct {
		name   string
		config provider.Config
	}{{"key", provider.Config{Credentials: []string{"key"}}}, {"signed", provider.Config{Identity: newBenchIdentity(b)}}} {
		c.config.Name, c.config.Format, c.config.BaseURL = "p", "generic", server.URL
		p, err := provider.New(c.config)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			before := processorTime(b)
			for b.Loop() {
				a, err := p.Outbound(context.Background(), provider.Call{Method: http.MethodPost, Path: "/v1/chat/completions", Body: body})
				if err != nil {
					b.Fatal(err)
				}
				resp, _, err := p.Send(a)
				if err != nil {
					b.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/op")
		})
		p.Close()
	}
}

// processorTime is what the process has used so far: on a machine that is shared it
// says more than the time of the clock.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func newBenchIdentity(b *testing.B) *Identity {
	identity, err := New(signing(Config{}), slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	return identity
}

func TestSecretsDoNotPrint(t *testing.T) {
	t.Parallel()
	c := credential{bearer: "canary", keys: aws.Credentials{SecretAccessKey: "canary"}}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		for _, v := range []any{&c, &AWS{SecretAccessKey: "canary"}, &Azure{ClientSecret: "canary"}} {
			if got := strings.ReplaceAll(fmt.Sprintf(verb, v), "[redacted]", ""); got != "" {
				t.Errorf("%s of %T prints %q", verb, v, got)
			}
		}
	}
}
