package security

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"modelgate/test/testkit"
)

// oneSegment is a connection whose writes leave together.
type oneSegment struct {
	net.Conn
	text bytes.Buffer
}

func (s *oneSegment) Write(b []byte) (int, error) { return s.text.Write(b) }

func (s *oneSegment) flush() error {
	_, err := s.text.WriteTo(s.Conn)
	return err
}

func (s *oneSegment) Read(b []byte) (int, error) {
	if err := s.flush(); err != nil {
		return 0, err
	}
	return s.Conn.Read(b)
}

// rawProvider speaks HTTP/1.1 by hand, over TLS if it has a certificate. It answers
// with the texts that says returns, each a record of its own and all in one segment,
// and ends the connection on none.
func rawProvider(t *testing.T, secure *httptest.Server, says func(r *http.Request, body string) []string) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url = "http://" + l.Addr().String()
	if secure != nil {
		url = "https://" + l.Addr().String()
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				below := &oneSegment{Conn: conn}
				conn := net.Conn(below)
				if secure != nil {
					conn = tls.Server(below, &tls.Config{Certificates: secure.TLS.Certificates})
				}
				for in := bufio.NewReader(conn); ; {
					r, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					body, _ := io.ReadAll(r.Body)
					texts := says(r, string(body))
					for _, text := range texts {
						if _, err := io.WriteString(conn, text); err != nil {
							return
						}
					}
					if below.flush() != nil || len(texts) == 0 {
						return
					}
				}
			}()
		}
	}()
	return url
}

// vouched is a certificate for loopback, and the file that vouches for it.
func vouched(t *testing.T) (secure *httptest.Server, caFile string) {
	t.Helper()
	secure = httptest.NewTLSServer(nil)
	t.Cleanup(secure.Close)
	caFile = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return secure, caFile
}

// withLength is a reply of so many tokens that says whose it is.
func withLength(whose string, tokens int) (head, body string) {
	body = fmt.Sprintf(`{"id":%q,"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":1,"total_tokens":%d}}`, whose, tokens, tokens+1)
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", len(body)), body
}

// TestSurplusReplies has a provider put a reply behind its replies, in every
// place, over TCP and TLS and where HTTP/2 is wanted. Calls of another
// organization, after these and beside them, get their own answers and are booked
// for these; the bytes are in no log.
func TestSurplusReplies(t *testing.T) {
	t.Parallel()
	secure, ca := vouched(t)
	forgedHead, forgedBody := withLength("forged-mark", 1000)
	forged := forgedHead + forgedBody
	head, body := withLength("surplus", 3)
	replies := [][]string{
		{head + body + forged}, {head, body + forged}, {head + body, forged}, {head, body, forged}, {head, body + forged[:9], forged[9:]},
		{"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n", fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body) + forged},
		{"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body), forged},
		{"HTTP/1.1 204 No Content\r\n\r\n" + forged}, {"HTTP/1.1 204 No Content\r\n\r\n", forged},
		{"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 4\r\n\r\n", "naïve-mark"},
	}
	place := regexp.MustCompile(`surplus-(\d+)`)
	says := func(r *http.Request, sent string) []string {
		if found := place.FindStringSubmatch(sent); found != nil {
			n := 0
			fmt.Sscan(found[1], &n)
			return replies[n]
		}
		head, body := withLength(regexp.MustCompile(`mine-[\d-]+`).FindString(sent), 3)
		return []string{head, body}
	}
	g := testkit.StartGateway(t, testkit.GatewayOptions{Catalog: " []", Providers: fmt.Sprintf(`
  - {name: plain, format: openai, base_url: %q, region: us, credential: sk-upstream}
  - {name: plain2, format: openai, base_url: %[1]q, region: us, credential: sk-upstream, http2: true}
  - {name: tls, format: openai, base_url: %[2]q, region: us, credential: sk-upstream, ca_file: %[3]q}
  - {name: tls2, format: openai, base_url: %[2]q, region: us, credential: sk-upstream, ca_file: %[3]q, http2: true}`,
		rawProvider(t, nil, says), rawProvider(t, secure, says), ca)})
	one, _ := g.NewKey(g.NewClient("one"))
	other, _ := g.NewKey(g.NewClient("other"))
	call := func(provider, key, text string) answer {
		return ask(t, g.URL, key, "POST", "/"+provider+"/v1/chat/completions", strings.Replace(chat("m"), "hello", text, 1))
	}
	mine := func(provider, text string) {
		if a := call(provider, other, text); a.StatusCode != 200 || !strings.Contains(a.body, fmt.Sprintf(`"id":%q`, text)) {
			t.Errorf("%s: the other organization's %s got %s", provider, text, a)
		}
	}
	calls := 0
	for _, provider := range []string{"plain", "plain2", "tls", "tls2"} {
		for i := range replies {
			if a := call(provider, one, fmt.Sprintf("surplus-%d", i)); a.StatusCode/100 != 2 || strings.Contains(a.body, "mark") {
				t.Errorf("%s, reply %d: %s", provider, i, a)
			}
			mine(provider, fmt.Sprintf("mine-%d", i))
			calls++
		}
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				for j := range 10 {
					if i%2 == 0 {
						call(provider, one, fmt.Sprintf("surplus-%d", j%len(replies)))
					} else {
						mine(provider, fmt.Sprintf("mine-%d-%d", i, j))
					}
				}
			})
		}
		all.Wait()
		calls += 40
	}
	eventually(t, "the rows", patience, func() bool {
		return strings.Count(ask(t, g.URL, other, "GET", "/gw/usage?limit=1000", "").body, `"total_tokens":4,`) == calls
	})
	for _, mark := range []string{"forged-mark", "ve-mark", "Unsolicited"} {
		if strings.Contains(g.Log(), mark) {
			t.Errorf("the log has %q:\n%.2000s", mark, g.Log())
		}
	}
}

// TestProviderAddressesAreNotWritten lets a provider name results at addresses
// that would be two requests, or none. What reaches it is whole requests of the
// gateway's own; an address with a space in its query is escaped and fetched.
func TestProviderAddressesAreNotWritten(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var targets []string
	address := ""
	url := rawProvider(t, nil, func(r *http.Request, body string) []string {
		mu.Lock()
		defer mu.Unlock()
		targets = append(targets, r.RequestURI)
		reply := `{"name":"models/veo/operations/g1"}`
		switch {
		case strings.Contains(r.RequestURI, "files"):
			reply = "the film"
		case r.Method == http.MethodGet:
			reply = `{"done":true,"response":{"generateVideoResponse":{"generatedSamples":[{"video":{"uri":"http://` + r.Host + address + `"}}]}}}`
		}
		return []string{fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(reply), reply)}
	})
	g := testkit.StartGateway(t, testkit.GatewayOptions{
		Providers: fmt.Sprintf(`
  - {name: gem, format: gemini, base_url: %q, region: us, credential: sk-upstream}`, url),
		Catalog: `
  - {slug: lab/veo, kind: video, routes: [{provider: gem, model: veo}], price: {second: 0.1}}`,
	})
	key, _ := g.NewKey(g.NewClient("films"))
	made := ask(t, g.URL, key, "POST", "/gem/v1beta/models/veo:predictLongRunning", `{"instances":[{"prompt":"x"}],"parameters":{"durationSeconds":8,"resolution":"720p"}}`)
	if made.StatusCode != 200 {
		t.Fatalf("the creation: %s\n%s", made, g.Log())
	}
	const file, smuggled = "/v1beta/files/abc:download?alt=media&name=a", "GET /smuggled HTTP/1.1\\r\\nHost: h\\r\\n\\r\\n"
	for suffix, want := range map[string]int{
		"": 200, " b": 200, " HTTP/1.1\\r\\nHost: h\\r\\n\\r\\n" + smuggled: 404, "\\r\\nX-Y: z": 404, "\\n": 404, "\\u0000": 404, "\\u007f": 404, "\\tb": 404,
	} {
		mu.Lock()
		address, targets = file+suffix, nil
		mu.Unlock()
		a := ask(t, g.URL, key, "GET", "/v1/videos/models%2Fveo%2Foperations%2Fg1/content", "")
		if a.StatusCode == 400 { // the id as it stands
			a = ask(t, g.URL, key, "GET", "/v1/videos/models/veo/operations/g1/content", "")
		}
		if a.StatusCode != want || want == 200 && a.body != "the film" {
			t.Errorf("address %q: %s, want %d", suffix, a, want)
		}
		mu.Lock()
		for _, target := range targets {
			if target != strings.ReplaceAll(file+suffix, " ", "%20") && target != "/v1beta/models/veo/operations/g1" {
				t.Errorf("address %q: the provider got %q", suffix, target)
			}
		}
		mu.Unlock()
	}
}

// TestWordsOfAProviderInErrors reaches providers that answer what is no reply,
// that have a certificate of nobody's, and that are not there. Clients get a bare
// status; the log says why in words of the gateway's, once, and a counter counts.
func TestWordsOfAProviderInErrors(t *testing.T) {
	t.Parallel()
	secure, _ := vouched(t)
	garbage := func(text string) string {
		return rawProvider(t, nil, func(*http.Request, string) []string { return []string{text, "", "\r\n\r\n"} })
	}
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	causes := map[string][2]string{
		"words":  {garbage("words-mark of a provider\r\n\r\n"), "malformed"},
		"status": {garbage("HTTP/1.1 words-mark OK\r\n\r\n"), "malformed"},
		"header": {garbage("HTTP/1.1 200 OK\r\nwords-mark without a colon\r\n\r\n"), "malformed"},
		"closed": {rawProvider(t, nil, func(*http.Request, string) []string { return nil }), "closed"},
		"tls":    {rawProvider(t, secure, func(*http.Request, string) []string { return nil }), "tls"},
		"notls":  {strings.Replace(garbage("x"), "http:", "https:", 1), ""},
		"gone":   {"http://" + gone.Addr().String(), "refused"},
		"dns":    {"http://modelgate-test.invalid", "dns"},
	}
	delete(causes, "notls") // a server that waits for lines would answer a handshake with nothing
	var providers strings.Builder
	for name, c := range causes {
		fmt.Fprintf(&providers, "\n  - {name: %s, format: openai, base_url: %q, region: us, credential: sk-upstream}", name, c[0])
	}
	g := testkit.StartGateway(t, testkit.GatewayOptions{Catalog: " []", Providers: providers.String(), Server: `admin_listen: "127.0.0.1:0"`})
	key, _ := g.NewKey(g.NewClient("unreached"))
	for name, c := range causes {
		var first string
		for i := range 3 {
			a := ask(t, g.URL, key, "POST", "/"+name+"/v1/chat/completions", chat("m"))
			if a.StatusCode != 502 || a.body != "" {
				t.Errorf("%s: %s, want a bare 502", name, a)
			}
			if i == 0 {
				first = a.Header.Get("X-Gateway-Request-Id")
			}
		}
		line := regexp.MustCompile(`(?m)^.*provider cannot be reached.*` + first + `.*$`).FindString(g.Log())
		if !strings.Contains(line, name) || !strings.Contains(line, c[1]) || !strings.Contains(line, "WARN") {
			t.Errorf("%s: the log says %q of the first call, want a warning with cause %s", name, line, c[1])
		}
		if n := len(regexp.MustCompile(`(?m)^.*provider cannot be reached.*provider"?[=:]"?`+name+`\b.*$`).FindAllString(g.Log(), -1)); n != 1 {
			t.Errorf("%s: %d warnings for three calls, want 1", name, n)
		}
	}
	if strings.Contains(g.Log(), "words-mark") || strings.Contains(g.Log(), "sk-upstream") {
		t.Errorf("the log quotes a provider:\n%.3000s", g.Log())
	}
}
