package security

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"modelgate/test/testkit"
)

// atOnce is how long a refusal may take that waits for nobody: well below the
// ten seconds that a client gets for the next piece of its body.
const atOnce = 5 * time.Second

// front is one way to reach a gateway.
type front struct {
	name, base, provider, key string
	dial                      func() (net.Conn, error)
}

// fronts are a gateway without TLS and one that ends TLS itself.
func fronts(t *testing.T) []front {
	t.Helper()
	l := newLabAlone(t, "early")
	certFile, keyFile := testkit.Certificate(t)
	g := testkit.StartGateway(t, testkit.GatewayOptions{Server: fmt.Sprintf("tls: {cert_file: %q, key_file: %q}, admin_listen: \"127.0.0.1:0\"", certFile, keyFile)})
	key, _ := g.NewKey(g.NewClient("early"))
	address := strings.TrimPrefix(g.URL, "http://")
	return []front{
		{"plain", l.URL, "early", l.key, func() (net.Conn, error) { return net.Dial("tcp", strings.TrimPrefix(l.URL, "http://")) }},
		{"TLS", "https://" + address, "openai", key, func() (net.Conn, error) {
			return tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
		}},
	}
}

// early is a request that is refused before its body.
type early struct {
	name, head string // without the empty line
	want       int
}

func refusals(provider, key string) []early {
	head := func(target, key string) string {
		return "POST " + target + " HTTP/1.1\r\nHost: g\r\nContent-Type: application/json\r\nAuthorization: Bearer " + key + "\r\n"
	}
	large, nobody := fmt.Sprintf("Content-Length: %d\r\n", bound+1), "gw_live_"+strings.Repeat("0", 48)
	cases := []early{
		{"a door, too large", head("/v1/chat/completions", key) + large, 413},
		{"the proxy, too large", head("/"+provider+"/v1/chat/completions", key) + large, 413},
		{"management, too large", head("/gw/keys", key) + large, 413},
		{"too large without a key", head("/v1/chat/completions", nobody) + large, 413},
	}
	for _, framing := range []string{"Content-Length: 100", "Content-Length: 100000", "Content-Length: 1000000", "Transfer-Encoding: chunked"} {
		for _, target := range []string{"/v1/chat/completions", "/" + provider + "/v1/chat/completions", "/gw/keys"} {
			cases = append(cases, early{"no key of ours, " + target + ", " + framing, head(target, nobody) + framing + "\r\n", 401})
		}
	}
	for _, c := range cases[:len(cases):len(cases)] {
		cases = append(cases, early{c.name + ", Expect", c.head + "Expect: 100-continue\r\n", c.want})
	}
	return cases
}

// TestEarlyRefusalsWaitForNobody sends heads whose requests are refused for
// what the head says, and never a body.
func TestEarlyRefusalsWaitForNobody(t *testing.T) {
	t.Parallel()
	for _, f := range fronts(t) {
		for _, c := range refusals(f.provider, f.key) {
			t.Run(f.name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				conn, err := f.dial()
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				_, _ = io.WriteString(conn, c.head+"\r\n")
				_ = conn.SetReadDeadline(time.Now().Add(atOnce))
				resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatalf("no answer within %v: %v", atOnce, err)
				}
				if resp.StatusCode != c.want {
					t.Errorf("status %d, want %d", resp.StatusCode, c.want)
				}
			})
		}
	}
}

// TestEarlyRefusalsAreRead sends all of a body before it reads the answer, as
// many clients do: the answer is there, and no reset in its place.
func TestEarlyRefusalsAreRead(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("x", 24<<20)
	for _, f := range fronts(t) {
		for _, c := range []struct {
			key  string
			size int
			want int
		}{{f.key, len(body), 413}, {f.key, bound + 1, 413}, {"nobody", 200_000, 401}, {"nobody", 5 << 20, 401}} {
			t.Run(fmt.Sprint(f.name, "/", c.want, "/", c.size), func(t *testing.T) {
				t.Parallel()
				conn, err := f.dial()
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(patience))
				_, err = fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", c.key, c.size, body[:c.size])
				if err != nil {
					t.Errorf("the body could not be sent: %v", err)
				}
				resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil || resp.StatusCode != c.want {
					t.Fatalf("%v, %v; want status %d", resp, err, c.want)
				}
			})
		}
	}
}

// TestEarlyRefusalsKeepStep: what comes after a refusal is the body, never
// another request; a client that sends its body after the answer is served on
// the same connection or finds it closed.
func TestEarlyRefusalsKeepStep(t *testing.T) {
	t.Parallel()
	hidden := "GET /healthz HTTP/1.1\r\nHost: g\r\n\r\n"
	for _, f := range fronts(t) {
		next := fmt.Sprintf("POST /%s/v1/chat/completions HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", f.provider, f.key, len(chat("m")), chat("m"))
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprint(f.name, "/late ", late), func(t *testing.T) {
				t.Parallel()
				conn, err := f.dial()
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(patience))
				in := bufio.NewReader(conn)
				head := fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer nobody\r\nContent-Length: %d\r\n\r\n", len(hidden))
				if !late {
					head += hidden
				}
				_, _ = io.WriteString(conn, head)
				if resp := readAnswer(t, in); resp == nil || resp.StatusCode != 401 {
					t.Fatalf("the refusal: %v", resp)
				}
				if late {
					_, _ = io.WriteString(conn, hidden)
				}
				_, _ = io.WriteString(conn, next)
				resp := readAnswer(t, in)
				if resp == nil && !late {
					t.Error("the connection is closed although all of the body was there")
				}
				if resp != nil && (resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/json") {
					t.Errorf("the next request: %v", resp)
				}
			})
		}
	}
}

// readAnswer is the next answer on a connection, nil for none.
func readAnswer(t *testing.T, in *bufio.Reader) *http.Response {
	t.Helper()
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		return nil
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp
}

// stuck is a body that does not come.
type stuck struct{ done <-chan struct{} }

func (s stuck) Read([]byte) (int, error) {
	<-s.done
	return 0, io.ErrUnexpectedEOF
}

// TestEarlyRefusalsOverHTTP2 is TestEarlyRefusalsWaitForNobody on HTTP/2.
func TestEarlyRefusalsOverHTTP2(t *testing.T) {
	t.Parallel()
	f := fronts(t)[1]
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	for _, c := range []struct {
		key  string
		size int64
		want int
	}{{f.key, bound + 1, 413}, {"nobody", 100, 401}, {"nobody", 1_000_000, 401}, {"nobody", -1, 401}} {
		req, err := http.NewRequestWithContext(t.Context(), "POST", f.base+"/v1/chat/completions", stuck{t.Context().Done()})
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = c.size
		req.Header.Set("Authorization", "Bearer "+c.key)
		resp, err := (&http.Client{Transport: transport, Timeout: atOnce}).Do(req)
		if err != nil || resp.StatusCode != c.want || resp.ProtoMajor != 2 {
			t.Errorf("%d bytes: %v, %v; want status %d", c.size, resp, err, c.want)
			continue
		}
		resp.Body.Close()
	}
}

// TestEarlyRefusalsReachRealClients: curl with and without Expect, and Node's
// fetch, read the refusal.
func TestEarlyRefusalsReachRealClients(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "body")
	if err := os.WriteFile(file, make([]byte, 24<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, f := range fronts(t) {
		for _, c := range []struct {
			key, expect, version, want string
		}{
			{f.key, "Expect: 100-continue", "--http1.1", "413"}, {f.key, "Expect:", "--http1.1", "413"}, {"nobody", "Expect: 100-continue", "--http1.1", "413"},
			{f.key, "Expect:", "--http2", "413"},
		} {
			out, err := exec.CommandContext(t.Context(), "curl", "-sk", c.version, "-o", os.DevNull, "-w", "%{http_code}", "-m", "60", "-H", c.expect,
				"-H", "Authorization: Bearer "+c.key, "--data-binary", "@"+file, f.base+"/v1/chat/completions").Output()
			// On HTTP/2 some versions of curl stop at the status of a refusal while
			// they send, and end with 18 if its body is not there yet.
			if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 18 && c.version == "--http2" {
				err = nil
			}
			if err != nil || string(out) != c.want {
				t.Errorf("%s: curl %s %s: %s, %v; want %s", f.name, c.version, c.expect, out, err, c.want)
			}
		}
		const script = `for (const [key, size] of [[process.argv[1], 24 << 20], ["nobody", 200000], ["nobody", 5 << 20]]) {
			const r = await fetch(process.argv[2] + "/v1/chat/completions", {method: "POST", headers: {Authorization: "Bearer " + key}, body: new Uint8Array(size)});
			const e = await r.json();
			console.log(r.status, e.error.type);
		}`
		cmd := exec.CommandContext(t.Context(), "node", "--input-type=module", "-e", script, f.key, f.base)
		cmd.Env = append(os.Environ(), "NODE_TLS_REJECT_UNAUTHORIZED=0", "NODE_NO_WARNINGS=1")
		out, err := cmd.CombinedOutput()
		if want := "413 request_too_large\n401 unauthorized\n401 unauthorized\n"; err != nil || string(out) != want {
			t.Errorf("%s: fetch: %s, %v; want %s", f.name, out, err, want)
		}
	}
}

// TestChunkedBodiesWhereNoneIsRead: the bound holds on routes that take no
// body, and what is refused has not been done.
func TestChunkedBodiesWhereNoneIsRead(t *testing.T) {
	t.Parallel()
	l := newLabAlone(t, "chunked")
	_, id := l.NewKey(l.client)
	chunked := func(method, target string, size int) *answer {
		head := strings.Replace(l.request(method, target, ""), "Content-Length: 0", "Transfer-Encoding: chunked\r\nConnection: keep-alive", 1)
		var b strings.Builder
		b.WriteString(head)
		for left := size; left > 0; left -= min(left, 100_000) {
			n := min(left, 100_000)
			fmt.Fprintf(&b, "%x\r\n%s\r\n", n, strings.Repeat("x", n))
		}
		return l.raw(t, b.String()+"0\r\n\r\n")
	}
	for _, c := range []struct {
		target string
		small  int
	}{
		{"GET /v1/models", 200}, {"GET /v1/models/lab/chunked", 200}, {"GET /gw/me", 200}, {"GET /gw/evidence", 200}, {"GET /healthz", 200}, {"GET /readyz", 200},
		{"GET /dashboard", 200}, {"GET /v1/videos/" + strings.Repeat("x", 20), 404}, {"GET /chunked/v1/models", 400},
		{"POST /gw/processor/events/" + string(id) + "/retry", 404}, {"DELETE /gw/keys/" + string(id), 204},
	} {
		method, target, _ := strings.Cut(c.target, " ")
		// First what is too large: it must not delete the key.
		if a := chunked(method, target, bound+1); a == nil || a.StatusCode != 413 {
			t.Errorf("%s with a body past the bound: %v, want 413", c.target, a)
		}
		if a := chunked(method, target, 1000); a == nil || a.StatusCode != c.small {
			t.Errorf("%s with a small body: %v, want %d", c.target, a, c.small)
		}
	}
}

// TestWebhookTakesWhatTheBoundAllows delivers signed notices at the bound and
// one byte past it.
func TestWebhookTakesWhatTheBoundAllows(t *testing.T) {
	t.Parallel()
	const secret = "whsec_0123456789abcdef"
	g := testkit.StartGateway(t, testkit.GatewayOptions{More: fmt.Sprintf("processor: {base_url: \"http://127.0.0.1:1\", api_key: sk_test_x, webhook_secret: %q}\n", secret)})
	for size, want := range map[int]int{2 << 20: 204, bound: 204, bound + 1: 413} {
		body := `{"id":"evt_1","type":"invoice.created","data":{"object":{"x":"`
		body += strings.Repeat("x", size-len(body)-len(`"}}}`)) + `"}}}`
		at := time.Now().Unix()
		mac := hmac.New(sha256.New, []byte(secret))
		fmt.Fprintf(mac, "%d.%s", at, body)
		a := ask(t, g.URL, "", "POST", "/webhooks/processor", body, "Stripe-Signature", fmt.Sprintf("t=%d,v1=%s", at, hex.EncodeToString(mac.Sum(nil))))
		if a.StatusCode != want {
			t.Errorf("a delivery of %d bytes: %s, want %d", size, a, want)
		}
	}
}
