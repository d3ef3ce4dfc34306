package gateway

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/httpx"
	"modelgate/internal/provider"
	"modelgate/internal/provider/usage"
)

const (
	eventHead = "Content-Type: text/event-stream\nTransfer-Encoding: chunked"
	jsonHead  = "Content-Type: application/json\nTransfer-Encoding: chunked"
	// started states 10 tokens in and 1 out so far: 12,000 nano-USD.
	started     = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":10,\"output_tokens\":1}}}\n\n"
	startedCost = modelgate.Nano(12_000)
)

// asked is the least that a request costs: its own bytes as tokens.
func asked(body, slug, native string) modelgate.Nano {
	return modelgate.Nano(usage.EstimateTokens(int64(len(strings.Replace(body, slug, native, 1))))) * 1000
}

func chatAsked() modelgate.Nano { return asked(chatBody, "acme/chat", "gpt-x") }

// events is a stream of one data line each.
func events(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		fmt.Fprintf(&b, "data: %s\n\n", d)
	}
	return b.String()
}

func usageChunk(in, out int) string {
	return fmt.Sprintf(`{"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`, in, out)
}

func zipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text) // a buffer takes everything
	_ = w.Close()
	return b.String()
}

// misbehaviour is a provider that does something, and what must come of it.
type misbehaviour struct {
	path, body string // the chat call where empty
	upstream   func(conn net.Conn, marked <-chan struct{}) (keep bool)
	plan       plan
	status     int
	bare       bool // nothing but the status
	cut        bool // the client sees that the answer is not whole
	answer     string
	parse      modelgate.ParseStatus
	cost       modelgate.Nano
}

// says is an upstream that writes a text.
func says(text string) func(net.Conn, <-chan struct{}) bool {
	return func(conn net.Conn, _ <-chan struct{}) bool {
		_, err := io.WriteString(conn, text)
		return err == nil
	}
}

// saysAndCloses is one that then closes the connection.
func saysAndCloses(text string) func(net.Conn, <-chan struct{}) bool {
	return func(conn net.Conn, _ <-chan struct{}) bool {
		_, _ = io.WriteString(conn, text) // a broken connection is what follows anyway
		return false
	}
}

// hangs writes a text and then nothing more.
func hangs(text string) func(net.Conn, <-chan struct{}) bool {
	return func(conn net.Conn, _ <-chan struct{}) bool {
		_, _ = io.WriteString(conn, text)
		_, _ = conn.Read(make([]byte, 1)) // until the gateway hangs up
		return false
	}
}

func timeouts(t provider.Timeouts) plan {
	return plan{configure: func(c *provider.Config) { c.Timeouts = t }}
}

// transportFailures never give the client more than a status.
func transportFailures() map[string]misbehaviour {
	return map[string]misbehaviour{
		"hangs before the header": {upstream: hangs(""), plan: timeouts(provider.Timeouts{FirstByte: 300 * time.Millisecond}),
			status: 504, bare: true, parse: modelgate.ParsePartial, cost: chatAsked()},
		"takes longer than a call may": {upstream: hangs(""), plan: plan{options: Options{Lifetime: 2 * time.Second}},
			status: 504, bare: true, parse: modelgate.ParsePartial, cost: chatAsked()},
		"hangs up": {upstream: saysAndCloses(""), status: 502, bare: true, parse: modelgate.ParsePartial, cost: chatAsked()},
		"is no HTTP server": {upstream: saysAndCloses("SSH-2.0-OpenSSH_9.9\r\n"),
			status: 502, bare: true, parse: modelgate.ParsePartial, cost: chatAsked()},
		"switches protocols": {upstream: says("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"),
			status: 502, bare: true, parse: modelgate.ParsePartial, cost: chatAsked()},
		"sends interim responses for ever": {upstream: func(conn net.Conn, _ <-chan struct{}) bool {
			for {
				if _, err := io.WriteString(conn, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"); err != nil {
					return false
				}
			}
		}, status: 502, bare: true, parse: modelgate.ParsePartial, cost: chatAsked()},
		"sends a header without end": {upstream: func(conn net.Conn, _ <-chan struct{}) bool {
			_, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
			for err == nil {
				_, err = io.WriteString(conn, "X-More: "+strings.Repeat("m", 1000)+"\r\n")
			}
			return false
		}, status: 502, bare: true, parse: modelgate.ParsePartial, cost: chatAsked()},
	}
}

// brokenReplies begin well and end badly.
func brokenReplies() map[string]misbehaviour {
	claude := misbehaviour{path: "/v1/messages", body: claudeBody, status: 200, cut: true, parse: modelgate.ParsePartial, cost: startedCost}
	with := func(m misbehaviour, up func(net.Conn, <-chan struct{}) bool, p plan) misbehaviour {
		m.upstream, m.plan = up, p
		return m
	}
	errorEvent := with(claude, says(reply(eventHead, chunks(started, "event: error\ndata: {\"type\":\"error\"}\n\n")+lastChunk)), plan{})
	errorEvent.cut = false
	return map[string]misbehaviour{
		"resets in the middle of a stream": with(claude, func(conn net.Conn, marked <-chan struct{}) bool {
			_, _ = io.WriteString(conn, reply(eventHead, chunks(started)))
			<-marked
			_ = conn.(*net.TCPConn).SetLinger(0)
			return false
		}, plan{}),
		"closes in the middle of a stream": with(claude, saysAndCloses(reply(eventHead, chunks(started))), plan{}),
		"stalls between two pieces":        with(claude, hangs(reply(eventHead, chunks(started))), timeouts(provider.Timeouts{Idle: 50 * time.Millisecond})),
		"outlives its time":                with(claude, hangs(reply(eventHead, chunks(started))), plan{options: Options{Lifetime: 2 * time.Second}}),
		"ends a stream with an error":      errorEvent,
		"sends chunks that are none":       with(claude, saysAndCloses(reply(eventHead, chunks(started)+"zz\r\n")), plan{}),
		"sends less than it declared, the value whole": {upstream: saysAndCloses(reply(fmt.Sprintf("Content-Type: application/json\nContent-Length: %d", len(chatReply)+9), chatReply)),
			status: 200, cut: true, parse: modelgate.ParseOK, cost: chatCost},
		"sends less than it declared, the value cut": {upstream: saysAndCloses(reply(fmt.Sprintf("Content-Type: application/json\nContent-Length: %d", len(chatReply)), chatReply[:60])),
			status: 200, cut: true, parse: modelgate.ParsePartial, cost: chatAsked() + 2000},
		"sends more than a reply may have": {upstream: says(sized("application/json", `{"a":"`+strings.Repeat("x", 70_000)+`"}`)), plan: plan{options: Options{MaxReply: 50_000}},
			status: 200, cut: true, parse: modelgate.ParsePartial, cost: chatAsked()},
		"sends more than it declared": {upstream: says(sized("application/json", chatReply) + "and more"),
			status: 200, answer: chatReply, parse: modelgate.ParseOK, cost: chatCost},
		"declares no length and closes": {upstream: saysAndCloses(reply("Content-Type: application/json\nConnection: close", chatReply)),
			status: 200, answer: chatReply, parse: modelgate.ParseOK, cost: chatCost},
	}
}

// oddUsage is whole replies whose figures are missing or strange.
func oddUsage() map[string]misbehaviour {
	stream := func(body string, parse modelgate.ParseStatus, cost modelgate.Nano) misbehaviour {
		return misbehaviour{body: streamBody, upstream: says(reply(eventHead, chunks(body)+lastChunk)), status: 200, answer: body, parse: parse, cost: cost}
	}
	value := func(body string, parse modelgate.ParseStatus, cost modelgate.Nano) misbehaviour {
		return misbehaviour{upstream: says(sized("application/json", body)), status: 200, answer: body, parse: parse, cost: cost}
	}
	on := func(m misbehaviour, path, body string) misbehaviour {
		m.path, m.body = path, body
		return m
	}
	word := `{"choices":[{"delta":{"content":"w"}}]}`
	streamAsked := asked(streamBody, "acme/chat", "gpt-x")
	empty := `{"object":"list","data":[]}`
	embed := `{"model":"acme/embed","input":"hello there"}`
	return map[string]misbehaviour{
		"no usage":                 value(`{"choices":[]}`, modelgate.ParsePartial, chatAsked()),
		"no usage in a stream":     stream(events(word, word, word, word, word, word, "[DONE]"), modelgate.ParsePartial, streamAsked+2*2000),
		"usage twice":              stream(events(word, usageChunk(10, 5), usageChunk(11, 6), "[DONE]"), modelgate.ParseOK, 23_000),
		"usage of zero":            value(`{"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0}}`, modelgate.ParseOK, 0),
		"usage of null":            value(`{"choices":[],"usage":null}`, modelgate.ParsePartial, chatAsked()),
		"negative usage":           value(`{"choices":[],"usage":{"prompt_tokens":-5,"completion_tokens":5}}`, modelgate.ParsePartial, chatAsked()+10_000),
		"a line of 9 MiB":          stream(events(`{"x":"`+strings.Repeat("x", 9<<20)+`"}`, usageChunk(10, 5), "[DONE]"), modelgate.ParsePartial, chatCost),
		"model without a price":    on(value(chatReply, modelgate.ParsePartial, 0), "", strings.Replace(chatBody, "acme/chat", "acme/unpriced", 1)),
		"more bytes than context":  on(value(`{"choices":[]}`, modelgate.ParsePartial, 5*1000), "", strings.Replace(chatBody, "acme/chat", "acme/small", 1)),
		"embeddings without usage": on(value(empty, modelgate.ParsePartial, asked(embed, "acme/embed", "ada")), "/v1/embeddings", embed),
		"speech of no text":        on(value(`{}`, modelgate.ParseUnknown, 0), "/v1/audio/speech", `{"model":"acme/voice"}`),
		"a count of tokens":        on(value(`{"input_tokens":3}`, modelgate.ParseOK, 0), "/v1/messages/count_tokens", `{"model":"acme/claude","messages":[]}`),
	}
}

// statuses is replies that are no success, and replies in a coding.
func statuses() map[string]misbehaviour {
	answers := func(status int, header, body string) misbehaviour {
		text := fmt.Sprintf("HTTP/1.1 %d Status\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s", status, header, len(body), body)
		return misbehaviour{upstream: says(text), status: status, answer: body, parse: modelgate.ParseOK}
	}
	small, bomb := zipped(chatReply), zipped(`{"a":"`+strings.Repeat("x", 16<<20)+`"}`)
	coded := answers(200, "Content-Encoding: gzip\r\n", small)
	coded.cost = chatCost
	bombed := answers(200, "Content-Encoding: gzip\r\n", bomb)
	bombed.parse, bombed.cost = modelgate.ParsePartial, chatAsked()
	charged := answers(400, "", chatReply)
	charged.cost = chatCost
	return map[string]misbehaviour{
		"error":                 answers(400, "", `{"error":{}}`),
		"error that is charged": charged,
		"fault":                 answers(500, "", `{"error":{}}`),
		"too many requests":     answers(429, "Retry-After: 7\r\n", `{"error":{}}`),
		"redirect":              answers(302, "Location: http://127.0.0.1:1/\r\n", ``),
		"no content":            {upstream: says("HTTP/1.1 204 No Content\r\n\r\n"), status: 204, parse: modelgate.ParsePartial, cost: chatAsked()},
		"gzip, not asked for":   coded,
		"gzip bomb":             bombed,
	}
}

func TestProviderMisbehaviour(t *testing.T) {
	t.Parallel()
	for group, table := range map[string]map[string]misbehaviour{
		"transport": transportFailures(), "broken": brokenReplies(), "usage": oddUsage(), "status": statuses(),
	} {
		for name, m := range table {
			t.Run(group+"/"+name, func(t *testing.T) {
				t.Parallel()
				m.check(t)
			})
		}
	}
}

func (m misbehaviour) check(t *testing.T) {
	marked := make(chan struct{})
	u := rawUpstream(t, func(conn net.Conn, _ *http.Request) bool { return m.upstream(conn, marked) })
	g := open(t, u.URL, m.plan)
	go func() {
		select {
		case <-g.books.marked:
		case <-t.Context().Done():
		}
		close(marked)
	}()
	path, body := m.path, m.body
	if path == "" {
		path = "/v1/chat/completions"
	}
	if body == "" {
		body = chatBody
	}
	resp, answer, err := g.do(t, path, body)
	if resp.StatusCode != m.status || (err != nil) != m.cut {
		t.Errorf("status %d, body error %v; want %d, an error %v", resp.StatusCode, err, m.status, m.cut)
	}
	if m.bare && (len(answer) > 0 || resp.Header.Get(httpx.RequestIDHeader) == "" || resp.Header.Get("Content-Type") != "") {
		t.Errorf("not bare: header %v, body %q", resp.Header, answer)
	}
	if !m.bare && !m.cut && m.answer != "" && string(answer) != m.answer {
		t.Errorf("%d bytes, want the provider's own %d", len(answer), len(m.answer))
	}
	end := g.books.only(t)
	if end.StatusCode != m.status || end.ParseStatus != m.parse || end.Cost != m.cost {
		t.Errorf("END %+v\nwant status %d, %s, cost %d", end, m.status, m.parse, m.cost)
	}
	eventually(t, "the call at the provider", func() bool { return u.hits.Load() > 0 })
	if hits := u.hits.Load(); hits != 1 {
		t.Errorf("%d hits, want 1", hits)
	}
}

func TestRefusedConnection(t *testing.T) {
	t.Parallel()
	g := open(t, nobody, plan{})
	resp, answer, err := g.do(t, "/v1/chat/completions", chatBody)
	if resp.StatusCode != 502 || len(answer) != 0 || err != nil || resp.Header.Get(httpx.RequestIDHeader) == "" {
		t.Errorf("status %d, body %q, %v; want a bare 502", resp.StatusCode, answer, err)
	}
	if end := g.books.only(t); end.StatusCode != 502 || end.ParseStatus != modelgate.ParseOK || end.Cost != 0 {
		t.Errorf("END %+v, want 502, ok, nothing charged: no byte was sent", end)
	}
}
