package gateway

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/httpx"
)

// exchange is a client connection whose bytes a test looks at one by one.
type exchange struct {
	conn net.Conn
	got  []byte
}

func (g *gate) dial(t *testing.T, path, body string) *exchange {
	t.Helper()
	conn, err := net.Dial("tcp", g.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: gate\r\nAuthorization: Bearer gw_live_any\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		path, len(body), body)
	if err != nil {
		t.Fatal(err)
	}
	return &exchange{conn: conn}
}

// until reads until the text has arrived, or the time is over.
func (x *exchange) until(text string, d time.Duration) bool {
	_ = x.conn.SetReadDeadline(time.Now().Add(d))
	buf := make([]byte, 4096)
	for !strings.Contains(string(x.got), text) {
		n, err := x.conn.Read(buf)
		x.got = append(x.got, buf[:n]...)
		if err != nil {
			return strings.Contains(string(x.got), text)
		}
	}
	return true
}

func TestEndIsBookedBeforeTheLastByte(t *testing.T) {
	t.Parallel()
	const (
		openAI = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n" +
			"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":5}}\n\n"
		anthropic = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":10,\"output_tokens\":1}}}\n\n" +
			"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":5}}\n\n"
		created = "event: response.created\ndata: {\"type\":\"response.created\"}\n\n"
		event   = "Content-Type: text/event-stream\nTransfer-Encoding: chunked"
		chunked = "Content-Type: application/json\nTransfer-Encoding: chunked"
	)
	done := "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":10,\"output_tokens\":5}}}\n\n"
	half := len(chatReply) / 2
	tests := map[string]struct {
		path, body string
		upstream   string
		early      string // arrives before END, "" for nothing in particular
		last       string // must not
		cost       modelgate.Nano
	}{
		"json, known length":      {"/v1/chat/completions", chatBody, sized("application/json", chatReply), "", chatReply[len(chatReply)-9:], chatCost},
		"json, chunked":           {"/v1/chat/completions", chatBody, reply(chunked, chunks(chatReply)+lastChunk), "", chatReply[len(chatReply)-9:], chatCost},
		"json, chunked in pieces": {"/v1/chat/completions", chatBody, reply(chunked, chunks(chatReply[:half], chatReply[half:])+lastChunk), "", chatReply[len(chatReply)-9:], chatCost},
		"openai stream":           {"/v1/chat/completions", streamBody, reply(event, chunks(openAI, "data: [DONE]\n\n")+lastChunk), "", "[DONE]", chatCost},
		"openai, usage injected":  {"/v1/chat/completions", `{"model":"acme/chat","stream":true}`, reply(event, chunks(openAI, "data: [DONE]\n\n")+lastChunk), "", "[DONE]", chatCost},
		"openai, no empty line":   {"/v1/chat/completions", `{"model":"acme/chat","stream":true}`, reply(event, chunks(openAI, "data: [DONE]\n")+lastChunk), "hi", "\r\n0\r\n\r\n", chatCost},
		"anthropic stream":        {"/v1/messages", claudeBody, reply(event, chunks(anthropic, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")+lastChunk), "", "message_stop", chatCost},
		"responses stream":        {"/v1/responses", `{"model":"acme/chat","stream":true,"input":"x"}`, reply(event, chunks(created, done)+lastChunk), "", "response.completed", chatCost},
		"sound, known length":     {"/v1/audio/speech", `{"model":"acme/voice","input":"four"}`, sized("audio/mpeg", strings.Repeat("s", 5000)+"END"), "", "END", 60_000},
		"sound, chunked":          {"/v1/audio/speech", `{"model":"acme/voice","input":"four"}`, reply("Content-Type: audio/mpeg\nTransfer-Encoding: chunked", chunks("sound", "more")+lastChunk), "more", "\r\n0\r\n\r\n", 60_000},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := open(t, rawUpstream(t, sends(tt.upstream)).URL, plan{})
			entered, release := make(chan struct{}, 1), make(chan struct{})
			g.books.onEnd = func() { entered <- struct{}{}; <-release }
			x := g.dial(t, tt.path, tt.body)
			wait(t, entered, "END")
			if x.until(tt.last, 30*time.Millisecond) {
				t.Errorf("the client had %q before END was booked", tt.last)
			}
			if tt.early != "" && !x.until(tt.early, patience) {
				t.Errorf("the client waits for END to see %q", tt.early)
			}
			close(release)
			if !x.until(tt.last, patience) {
				t.Errorf("the client never got %q; it has %q", tt.last, x.got)
			}
			if end := g.books.only(t); end.ParseStatus != modelgate.ParseOK || end.Cost != tt.cost {
				t.Errorf("END %+v, want ok and %d", end, tt.cost)
			}
		})
	}
}

// A disk that fails may hold nothing of the END: whoever had the answer then
// would have one that is not booked.
func TestAnswerIsWithheldWhenEndFails(t *testing.T) {
	t.Parallel()
	const event = "Content-Type: text/event-stream\nTransfer-Encoding: chunked"
	stream := "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":5}}\n\n"
	for name, tt := range map[string]struct{ body, upstream, last string }{
		"json, known length": {chatBody, sized("application/json", chatReply), chatReply[len(chatReply)-9:]},
		"json, chunked":      {chatBody, reply("Content-Type: application/json\nTransfer-Encoding: chunked", chunks(chatReply)+lastChunk), "\r\n0\r\n\r\n"},
		"stream":             {streamBody, reply(event, chunks(stream, "data: [DONE]\n\n")+lastChunk), "[DONE]"},
		"usage injected":     {`{"model":"acme/chat","stream":true}`, reply(event, chunks(stream, "data: [DONE]\n\n")+lastChunk), "[DONE]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := open(t, rawUpstream(t, sends(tt.upstream)).URL, plan{})
			g.books.lost = errors.New("input/output error")
			x := g.dial(t, "/v1/chat/completions", tt.body)
			if x.until(tt.last, patience) {
				t.Errorf("the client has %q although END failed", x.got)
			}
			if _, err := x.conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the connection is still there: %v", err)
			}
			g.books.only(t)
		})
	}
}

func TestBeginIsBookedBeforeTheFirstByte(t *testing.T) {
	t.Parallel()
	u := rawUpstream(t, sends(sized("application/json", chatReply)))
	g := open(t, u.URL, plan{})
	early := int64(0)
	g.books.onBegin = func() error { early = u.hits.Load(); return nil }
	resp, _, err := g.do(t, "/v1/chat/completions", chatBody)
	if resp.StatusCode != 200 || err != nil {
		t.Fatalf("status %d, %v", resp.StatusCode, err)
	}
	if early != 0 || u.hits.Load() != 1 {
		t.Errorf("%d hits before BEGIN and %d in all, want 0 and 1", early, u.hits.Load())
	}
	b := g.books.begins[0]
	if b.ID.String() != resp.Header.Get(httpx.RequestIDHeader) || b.Provider != "openai" || b.Model != "gpt-x" || b.Slug != "acme/chat" || b.Author != "acme" || b.Door != "/v1/chat/completions" {
		t.Errorf("BEGIN %+v", b)
	}
}

func TestWithoutBooksThereIsNoCall(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		begin  func() error
		status int
	}{
		"refused": {func() error { return errors.New("full") }, http.StatusServiceUnavailable},
		"panic":   {func() error { panic("broken") }, http.StatusInternalServerError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := rawUpstream(t, sends(sized("application/json", chatReply)))
			g := open(t, u.URL, plan{})
			g.books.onBegin = tt.begin
			resp, body, _ := g.do(t, "/v1/chat/completions", chatBody)
			if resp.StatusCode != tt.status || !strings.Contains(string(body), `"error"`) {
				t.Errorf("status %d, body %s", resp.StatusCode, body)
			}
			if u.hits.Load() != 0 {
				t.Error("the provider was called")
			}
			if begins, ends := g.books.counts(); begins != 0 || ends != 0 {
				t.Errorf("%d BEGIN and %d END, want none", begins, ends)
			}
		})
	}
}
