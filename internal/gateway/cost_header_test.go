package gateway

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"modelgate"
	"modelgate/internal/httpx"
)

// TestCostHeaders asks for the cost with every kind of reply: it is in the header
// of answers that can be held, in the trailer of others if the client takes one,
// and the body is the same.
func TestCostHeaders(t *testing.T) {
	t.Parallel()
	const usageEvent = `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5}}`
	pad := func(n int) string { return strings.Replace(chatReply, "{", `{"pad":"`+strings.Repeat("x", n)+`",`, 1) }
	stream := events(`{"choices":[{"index":0,"delta":{"content":"hi"}}]}`, usageEvent, "[DONE]")
	reader := []modelgate.Scope{modelgate.InferenceUse, modelgate.StatsRead}
	for name, tt := range map[string]struct {
		upstream, body, want string
		te                   string
		scopes               []modelgate.Scope
		sub                  modelgate.SubAccountID
		options              Options
		header, trailer      string
	}{
		"short":                  {upstream: sized("application/json", chatReply), body: chatBody, want: chatReply, scopes: reader, header: "0.00002"},
		"longer than a buffer":   {upstream: sized("application/json", pad(100_000)), body: chatBody, want: pad(100_000), scopes: reader, header: "0.00002"},
		"of unknown length":      {upstream: reply("Content-Type: application/json\nTransfer-Encoding: chunked", chunks(chatReply[:20], chatReply[20:])+lastChunk), body: chatBody, want: chatReply, scopes: reader, header: "0.00002"},
		"too long":               {upstream: sized("application/json", pad(maxHeld)), body: chatBody, want: pad(maxHeld), scopes: reader},
		"too long, trailers":     {upstream: sized("application/json", pad(maxHeld)), body: chatBody, want: pad(maxHeld), te: "trailers", scopes: reader, trailer: "0.00002"},
		"unknown and too long":   {upstream: reply("Content-Type: application/json\nTransfer-Encoding: chunked", chunks(pad(maxHeld))+lastChunk), body: chatBody, want: pad(maxHeld), te: "deflate, trailers;q=1", scopes: reader, trailer: "0.00002"},
		"stream":                 {upstream: reply(eventHead, chunks(stream)+lastChunk), body: streamBody, want: stream, scopes: reader},
		"stream, trailers":       {upstream: reply(eventHead, chunks(stream)+lastChunk), body: streamBody, want: stream, te: "trailers", scopes: reader, trailer: "0.00002"},
		"no memory":              {upstream: sized("application/json", pad(200_000)), body: chatBody, want: pad(200_000), scopes: reader, options: Options{Memory: httpx.NewMemoryQuota(100_000, 100_000)}},
		"without the right":      {upstream: sized("application/json", chatReply), body: chatBody, want: chatReply, te: "trailers", scopes: reader[:1]},
		"switched off":           {upstream: sized("application/json", chatReply), body: chatBody, want: chatReply, te: "trailers", scopes: reader, options: Options{NoCostHeaders: true}},
		"billed":                 {upstream: sized("application/json", chatReply), body: chatBody, want: chatReply, scopes: reader, sub: "s", header: "0.00003"},
		"what a provider states": {upstream: reply("Content-Type: application/json\nContent-Length: 2\nX-Gateway-Cost-Usd: 9\nX-Gateway-Parse-Status: ok", "{}"), body: chatBody, want: "{}", scopes: reader[:1]},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := rawUpstream(t, sends(tt.upstream))
			who := &modelgate.Caller{ClientID: "c", KeyID: "k", SubAccountID: tt.sub, Markup: 50_000_000, Scopes: tt.scopes, Entitlements: modelgate.OpenEntitlements()}
			if tt.sub == "" {
				who.Markup = 0
			}
			g := open(t, u.URL, plan{who: who, options: tt.options})
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			r := g.request(ctx, "/v1/chat/completions", tt.body)
			r.Header.Set(AskCostHeader, "1")
			if tt.te != "" {
				r.Header.Set("Te", tt.te)
			}
			resp, err := g.client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			answer, err := io.ReadAll(resp.Body)
			if err != nil || string(answer) != tt.want {
				t.Errorf("%v, %d bytes, want %d", err, len(answer), len(tt.want))
			}
			for place, h := range map[string]http.Header{tt.header: resp.Header, tt.trailer: resp.Trailer} {
				status := ""
				if place != "" {
					status = "ok"
				}
				if h.Get(costHeader) != place || h.Get(parseStatusHeader) != status {
					t.Errorf("cost %q, status %q, want %q in %v", h.Get(costHeader), h.Get(parseStatusHeader), place, h)
				}
			}
			if tt.header == tt.trailer && (resp.Header.Get(costHeader) != "" || resp.Trailer.Get(costHeader) != "") {
				t.Errorf("header %v, trailer %v", resp.Header, resp.Trailer)
			}
		})
	}
}

// TestCostHeaderOfFailures: a provider's error is told with its cost, a reply that
// breaks off and a refusal without.
func TestCostHeaderOfFailures(t *testing.T) {
	t.Parallel()
	who := &modelgate.Caller{ClientID: "c", KeyID: "k", Scopes: modelgate.AllScopes(), Entitlements: modelgate.OpenEntitlements()}
	call := func(upstream, body string) (*http.Response, error) {
		once := func(conn net.Conn, _ *http.Request) bool {
			_, _ = io.WriteString(conn, upstream)
			return false
		}
		g := open(t, rawUpstream(t, once).URL, plan{who: who})
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		r := g.request(ctx, "/v1/chat/completions", body)
		r.Header.Set(AskCostHeader, "1")
		resp, err := g.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		_, err = io.ReadAll(resp.Body)
		return resp, err
	}
	failed := strings.Replace(sized("application/json", `{"error":{}}`), "200 OK", "400 Bad Request", 1)
	if resp, err := call(failed, chatBody); err != nil || resp.StatusCode != 400 || resp.Header.Get(costHeader) != "0" || resp.Header.Get(parseStatusHeader) != "ok" {
		t.Errorf("an error: %v, %d %v", err, resp.StatusCode, resp.Header)
	}
	if resp, err := call(reply("Content-Type: application/json\nContent-Length: 500", chatReply[:30]), chatBody); err == nil || resp.Header.Get(costHeader) != "" {
		t.Errorf("cut: %v, %v", err, resp.Header)
	}
	if resp, _ := call(sized("application/json", chatReply), `{"model":"acme/none","messages":[]}`); resp.StatusCode != 404 || resp.Header.Get(costHeader) != "" {
		t.Errorf("refused: %d %v", resp.StatusCode, resp.Header)
	}
}
