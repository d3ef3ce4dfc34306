package gateway

import (
	"encoding/pem"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"modelgate"
	"modelgate/internal/provider"
	"modelgate/internal/provider/usage"
)

const twoBody = `{"model":"acme/two","messages":[]}`

func status(line string) string {
	return "HTTP/1.1 " + line + "\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
}

func TestFallback(t *testing.T) {
	t.Parallel()
	good := sized("application/json", chatReply)
	tests := map[string]struct {
		first, second string // "" hangs up after the request
		status        int
		hits          [2]int64
		route         string // of the row; "" is the first
	}{
		"answers":         {good, good, 200, [2]int64{1, 0}, ""},
		"429":             {status("429 Slow Down"), good, 200, [2]int64{1, 1}, "backup"},
		"500":             {status("500 Fault"), good, 200, [2]int64{1, 1}, "backup"},
		"503":             {status("503 Away"), good, 200, [2]int64{1, 1}, "backup"},
		"400 stands":      {status("400 Bad"), good, 400, [2]int64{1, 0}, ""},
		"401 stands":      {status("401 Who"), good, 401, [2]int64{1, 0}, ""},
		"hang-up stands":  {"", good, 502, [2]int64{1, 0}, ""},
		"both fail":       {status("500 Fault"), status("503 Away"), 503, [2]int64{1, 1}, "backup"},
		"second hangs up": {status("500 Fault"), "", 502, [2]int64{1, 1}, "backup"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, second := rawUpstream(t, answerOrHangUp(tt.first)), rawUpstream(t, answerOrHangUp(tt.second))
			g := open(t, first.URL, plan{backup: second.URL})
			resp, _, err := g.do(t, "/v1/chat/completions", twoBody)
			if resp.StatusCode != tt.status || err != nil {
				t.Errorf("status %d, %v; want %d", resp.StatusCode, err, tt.status)
			}
			if hits := [2]int64{first.hits.Load(), second.hits.Load()}; hits != tt.hits {
				t.Errorf("hits %v, want %v", hits, tt.hits)
			}
			end := g.books.only(t)
			if end.Provider != tt.route || end.StatusCode != tt.status {
				t.Errorf("END %+v, want route %q", end, tt.route)
			}
			if tt.route != "" && end.Model != "gpt-y" {
				t.Errorf("model %q, want that of the route that answered", end.Model)
			}
		})
	}
}

func answerOrHangUp(text string) func(net.Conn, *http.Request) bool {
	return func(conn net.Conn, _ *http.Request) bool {
		_, err := io.WriteString(conn, text)
		return err == nil && text != ""
	}
}

// A request that could not leave may go elsewhere, whatever kept it back.
func TestFallbackWhenNothingCouldBeSent(t *testing.T) {
	t.Parallel()
	plain := rawUpstream(t, answerOrHangUp(""))
	for name, first := range map[string]string{
		"refused": nobody,
		"no TLS":  strings.Replace(plain.URL, "http:", "https:", 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			second := rawUpstream(t, sends(sized("application/json", chatReply)))
			g := open(t, first, plan{backup: second.URL})
			resp, answer, _ := g.do(t, "/v1/chat/completions", twoBody)
			if resp.StatusCode != 200 || string(answer) != chatReply {
				t.Errorf("status %d, body %s", resp.StatusCode, answer)
			}
			if end := g.books.only(t); end.Provider != "backup" || end.Cost != chatCost {
				t.Errorf("END %+v", end)
			}
		})
	}
}

func TestMissingCredential(t *testing.T) {
	t.Parallel()
	without := func(name string) plan {
		return plan{configure: func(c *provider.Config) {
			if c.Name == name {
				c.Credentials, c.CredentialFile = nil, filepath.Join(t.TempDir(), "none")
			}
		}}
	}
	t.Run("of the first route", func(t *testing.T) {
		t.Parallel()
		u := rawUpstream(t, sends(sized("application/json", chatReply)))
		g := open(t, u.URL, without("openai"))
		resp, answer, _ := g.do(t, "/v1/chat/completions", chatBody)
		if resp.StatusCode != 500 || !strings.Contains(string(answer), "credential resolution failed") {
			t.Errorf("status %d, body %s", resp.StatusCode, answer)
		}
		if begins, ends := g.books.counts(); begins != 0 || ends != 0 || u.hits.Load() != 0 {
			t.Errorf("%d BEGIN, %d END, %d hits; want none", begins, ends, u.hits.Load())
		}
	})
	t.Run("of the first of two routes", func(t *testing.T) {
		t.Parallel()
		u, second := rawUpstream(t, sends(status("500 Fault"))), rawUpstream(t, sends(sized("application/json", chatReply)))
		p := without("openai")
		p.backup = second.URL
		g := open(t, u.URL, p)
		resp, answer, _ := g.do(t, "/v1/chat/completions", twoBody)
		if resp.StatusCode != 200 || u.hits.Load() != 0 {
			t.Errorf("status %d, body %s, %d hits of the first route", resp.StatusCode, answer, u.hits.Load())
		}
		if end := g.books.only(t); end.Provider != "backup" || end.Cost != chatCost {
			t.Errorf("END %+v", end)
		}
	})
	t.Run("of a fallback", func(t *testing.T) {
		t.Parallel()
		u, second := rawUpstream(t, sends(status("500 Fault"))), rawUpstream(t, sends(status("200 OK")))
		p := without("backup")
		p.backup = second.URL
		g := open(t, u.URL, p)
		resp, _, _ := g.do(t, "/v1/chat/completions", twoBody)
		if resp.StatusCode != 500 || second.hits.Load() != 0 {
			t.Errorf("status %d, %d hits of the second; want the first route's 500", resp.StatusCode, second.hits.Load())
		}
		if end := g.books.only(t); end.Provider != "" || end.ParseStatus != modelgate.ParseOK {
			t.Errorf("END %+v, want the first route's", end)
		}
	})
}

func TestRefusedCredentialRests(t *testing.T) {
	t.Parallel()
	for _, refusal := range []string{"401 Who", "429 Slow Down"} {
		t.Run(refusal, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var used []string
			u := rawUpstream(t, func(conn net.Conn, r *http.Request) bool {
				mu.Lock()
				defer mu.Unlock()
				used = append(used, r.Header.Get("Authorization"))
				text := status("200 OK")
				if used[0] == used[len(used)-1] {
					text = status(refusal) // whichever comes first is the bad one
				}
				_, err := io.WriteString(conn, text)
				return err == nil
			})
			g := open(t, u.URL, plan{configure: func(c *provider.Config) { c.Credentials = []string{"sk-one", "sk-two"} }})
			var got []int
			for range 4 {
				resp, _, _ := g.do(t, "/v1/chat/completions", chatBody)
				got = append(got, resp.StatusCode)
			}
			refused := map[string]int{"401 Who": 401, "429 Slow Down": 429}[refusal]
			if want := []int{refused, 200, 200, 200}; !slices.Equal(got, want) {
				t.Errorf("statuses %v with %v, want %v", got, used, want)
			}
		})
	}
}

// A provider that closes kept connections between calls is neither an error
// for the client nor called twice.
func TestStaleConnections(t *testing.T) {
	t.Parallel()
	closed := make(chan struct{}, 1)
	u := rawUpstream(t, func(conn net.Conn, _ *http.Request) bool {
		_, _ = io.WriteString(conn, sized("application/json", chatReply))
		_ = conn.(*net.TCPConn).CloseWrite()
		closed <- struct{}{}
		_, _ = conn.Read(make([]byte, 1)) // until the gateway has closed its side
		return false
	})
	g := open(t, u.URL, plan{})
	const calls = 20
	for range calls {
		if resp, answer, err := g.do(t, "/v1/chat/completions", chatBody); resp.StatusCode != 200 || string(answer) != chatReply || err != nil {
			t.Fatalf("status %d, body %q, %v", resp.StatusCode, answer, err)
		}
		wait(t, closed, "end of the connection")
	}
	if hits := u.hits.Load(); hits != calls {
		t.Errorf("%d hits, want %d", hits, calls)
	}
}

func TestHTTP2Provider(t *testing.T) {
	t.Parallel()
	serve := func(t *testing.T, handler http.HandlerFunc) *gate {
		server := httptest.NewUnstartedServer(handler)
		server.EnableHTTP2 = true
		server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
		server.StartTLS()
		t.Cleanup(server.Close)
		ca := filepath.Join(t.TempDir(), "ca.pem")
		if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
			t.Fatal(err)
		}
		return open(t, server.URL, plan{configure: func(c *provider.Config) {
			if c.Name == "anthropic" || c.Name == "openai" {
				c.CAFile, c.HTTP2 = ca, true
			}
		}})
	}
	t.Run("stream", func(t *testing.T) {
		t.Parallel()
		body := events(`{"choices":[{"delta":{"content":"w"}}]}`, usageChunk(10, 5), "[DONE]")
		g := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Set("X-Major", string(rune('0'+r.ProtoMajor)))
			_, _ = io.WriteString(w, body)
		})
		resp, answer, err := g.do(t, "/v1/chat/completions", streamBody)
		if resp.Header.Get("X-Major") != "2" || string(answer) != body || err != nil {
			t.Errorf("HTTP/%s, %d bytes, %v", resp.Header.Get("X-Major"), len(answer), err)
		}
		if end := g.books.only(t); end.ParseStatus != modelgate.ParseOK || end.Cost != chatCost {
			t.Errorf("END %+v, want ok and %d", end, chatCost)
		}
	})
	t.Run("reset", func(t *testing.T) {
		t.Parallel()
		g := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, started)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		})
		if _, _, err := g.do(t, "/v1/messages", claudeBody); err == nil {
			t.Error("the client's stream ended as if it were whole")
		}
		if end := g.books.only(t); end.ParseStatus != modelgate.ParsePartial {
			t.Errorf("END %+v, want partial", end)
		}
	})
}

func TestMarks(t *testing.T) {
	t.Parallel()
	t.Run("what the first event states", func(t *testing.T) {
		t.Parallel()
		u := newTwoParts(t, reply(eventHead, chunks(started)), lastChunk)
		g := open(t, u.URL, plan{})
		x := g.dial(t, "/v1/messages", claudeBody)
		wait(t, g.books.marked, "MARK")
		close(u.proceed)
		x.until(lastChunk, patience)
		g.books.only(t)
		m := g.books.marks[0]
		if len(g.books.marks) != 1 || m.Usage != (modelgate.Usage{Input: 10, Output: 1}) || m.Cost != startedCost || m.StatusCode != 200 || m.PriceLabel == "" {
			t.Errorf("marks %+v", g.books.marks)
		}
	})
	t.Run("seldom", func(t *testing.T) {
		t.Parallel()
		const pieces = 500
		u := rawUpstream(t, func(conn net.Conn, _ *http.Request) bool {
			_, _ = io.WriteString(conn, reply(eventHead, ""))
			for n := range pieces {
				_, _ = io.WriteString(conn, chunks(events(`{"candidates":[{"index":0}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":`+string(rune('1'+n%9))+`}}`)))
			}
			_, err := io.WriteString(conn, lastChunk)
			return err == nil
		})
		g := open(t, u.URL, plan{})
		began := time.Now()
		g.do(t, "/gemini/v1beta/models/gemini-x:streamGenerateContent?alt=sse", `{"contents":[]}`)
		g.books.only(t)
		if most := firstLooks + 1 + int(time.Since(began)/lookEvery); len(g.books.marks) == 0 || len(g.books.marks) > most {
			t.Errorf("%d marks, want 1..%d", len(g.books.marks), most)
		}
	})
	t.Run("not where usage comes last", func(t *testing.T) {
		t.Parallel()
		body := events(`{"choices":[{"delta":{"content":"w"}}]}`, usageChunk(10, 5), "[DONE]")
		g := open(t, rawUpstream(t, sends(reply(eventHead, chunks(body)+lastChunk))).URL, plan{})
		g.do(t, "/v1/chat/completions", streamBody)
		g.books.only(t)
		if len(g.books.marks) != 0 {
			t.Errorf("marks %+v, want none", g.books.marks)
		}
	})
}

// brokenMeter is a reader with a fault.
type brokenMeter struct{ usage.Meter }

func (brokenMeter) Result() (modelgate.Usage, usage.Seen) { panic("fault in a reader") }

func TestFaultInAReaderStillEndsTheCall(t *testing.T) {
	t.Parallel()
	b := newBooks()
	live := liveAt(t, "http://127.0.0.1:1", plan{})
	y := New(Options{Books: b, Log: slog.New(slog.DiscardHandler), Metrics: NewMetrics(prometheus.NewRegistry())})
	c := &call{status: 200, begun: true, sent: true, meter: brokenMeter{}, attempts: []attempt{{name: "openai", provider: live.Providers["openai"]}}}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was lost")
			}
		}()
		y.recordEnd(c)
	}()
	if len(b.ends) != 1 || b.ends[0].StatusCode != 200 || b.ends[0].ParseStatus != modelgate.ParseUnknown {
		t.Errorf("END %+v, want one, 200 and unknown", b.ends)
	}
}
