package gateway

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/cancelctx"
	"modelgate/internal/provider"
)

// eventually waits until something that has no signal of its own is so.
func eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// twoParts is an upstream that stops in the middle until it is told to go on.
// Closed is closed when the gateway hangs up there.
type twoParts struct {
	*raw
	proceed, closed chan struct{}
}

func newTwoParts(t testing.TB, first, second string) *twoParts {
	u := &twoParts{proceed: make(chan struct{}), closed: make(chan struct{}, 100)}
	u.raw = rawUpstream(t, func(conn net.Conn, _ *http.Request) bool {
		_, _ = io.WriteString(conn, first)
		gone := make(chan struct{})
		go func() {
			_, _ = conn.Read(make([]byte, 1)) // nothing comes: it returns when the connection ends
			close(gone)
		}()
		select {
		case <-u.proceed:
			_, _ = io.WriteString(conn, second)
		case <-gone:
			u.closed <- struct{}{}
		}
		return false
	})
	return u
}

// leaves makes a call and hangs up: before the answer, or once it has read a
// text.
func (g *gate) leaves(t *testing.T, u *twoParts, path, body, after string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	type result struct {
		resp *http.Response
		err  error
	}
	answered := make(chan result, 1)
	go func() {
		resp, err := g.client.Do(g.request(ctx, path, body))
		answered <- result{resp, err}
	}()
	wait(t, u.got, "request at the provider")
	if after == "" {
		cancel()
		if r := <-answered; r.err == nil {
			t.Fatal("there was an answer")
		}
		return
	}
	r := <-answered
	if r.err != nil {
		t.Fatal(r.err)
	}
	defer r.resp.Body.Close()
	var got strings.Builder
	buf := make([]byte, 512)
	for !strings.Contains(got.String(), after) {
		n, err := r.resp.Body.Read(buf)
		got.Write(buf[:n])
		if err != nil {
			t.Fatalf("read %q and %v", got.String(), err)
		}
	}
}

func TestClientLeaves(t *testing.T) {
	t.Parallel()
	head := reply(eventHead, "")
	claudeEnd := "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":5}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	used := events(`{"choices":[{"delta":{"content":"w"},"finish_reason":"stop"}]}`, usageChunk(10, 5))
	tests := map[string]struct {
		path, body, first, second string
		after                     string
		policy                    provider.Disconnect
		status                    int
		parse                     modelgate.ParseStatus
		cost                      modelgate.Nano
	}{
		"before the header, drained":   {"/v1/chat/completions", chatBody, "", sized("application/json", chatReply), "", provider.Drain, 200, modelgate.ParseOK, chatCost},
		"before the header, cancelled": {"/v1/chat/completions", chatBody, "", "", "", provider.Cancel, 499, modelgate.ParsePartial, chatAsked()},
		"in a stream, drained":         {"/v1/messages", claudeBody, head + chunks(started), chunks(claudeEnd) + lastChunk, "message_start", provider.Drain, 200, modelgate.ParseOK, chatCost},
		"in a stream, cancelled":       {"/v1/messages", claudeBody, head + chunks(started), "", "message_start", provider.Cancel, 200, modelgate.ParsePartial, startedCost},
		"after the usage, drained":     {"/v1/chat/completions", streamBody, head + chunks(used), chunks(events("[DONE]")) + lastChunk, "prompt_tokens", provider.Drain, 200, modelgate.ParseOK, chatCost},
		"after the usage, cancelled":   {"/v1/chat/completions", streamBody, head + chunks(used), "", "prompt_tokens", provider.Cancel, 200, modelgate.ParseOK, chatCost},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newTwoParts(t, tt.first, tt.second)
			g := open(t, u.URL, plan{configure: func(c *provider.Config) { c.OnDisconnect = tt.policy }})
			g.leaves(t, u, tt.path, tt.body, tt.after)
			if tt.policy == provider.Drain {
				eventually(t, "a drain", func() bool { return g.gateway.drains.count() == 1 })
				close(u.proceed)
			} else {
				wait(t, u.closed, "hang-up at the provider")
			}
			end := g.books.only(t)
			if end.StatusCode != tt.status || end.ParseStatus != tt.parse || end.Cost != tt.cost {
				t.Errorf("END %+v\nwant status %d, %s, cost %d", end, tt.status, tt.parse, tt.cost)
			}
			g.gateway.Wait()
			if g.gateway.drains.count() != 0 {
				t.Error("a slot is still taken")
			}
		})
	}
}

func TestDrainsAreBounded(t *testing.T) {
	t.Parallel()
	first := reply(eventHead, chunks(started))
	t.Run("number", func(t *testing.T) {
		t.Parallel()
		u := newTwoParts(t, first, "")
		g := open(t, u.URL, plan{options: Options{MaxDrain: 1}})
		g.leaves(t, u, "/v1/messages", claudeBody, "message_start")
		eventually(t, "a drain", func() bool { return g.gateway.drains.count() == 1 })
		g.leaves(t, u, "/v1/messages", claudeBody, "message_start")
		wait(t, u.closed, "hang-up of the second call") // the first one goes on
		wait(t, g.books.ended, "END")
		if begins, ends := g.books.counts(); begins != 2 || ends != 1 {
			t.Errorf("%d BEGIN and %d END, want 2 and 1", begins, ends)
		}
		close(u.proceed)
		wait(t, g.books.ended, "END of the first")
	})
	t.Run("time", func(t *testing.T) {
		t.Parallel()
		u := newTwoParts(t, first, "")
		g := open(t, u.URL, plan{options: Options{DrainFor: 30 * time.Millisecond}})
		g.leaves(t, u, "/v1/messages", claudeBody, "message_start")
		wait(t, u.closed, "hang-up at the provider")
		if end := g.books.only(t); end.ParseStatus != modelgate.ParsePartial || end.Cost != startedCost {
			t.Errorf("END %+v, want partial and %d", end, startedCost)
		}
	})
}

func TestCutEndsCallsUnderWay(t *testing.T) {
	t.Parallel()
	u := newTwoParts(t, reply(eventHead, chunks(started)), "")
	g := open(t, u.URL, plan{})
	x := g.dial(t, "/v1/messages", claudeBody)
	if !x.until("message_start", patience) {
		t.Fatal("no stream")
	}
	g.gateway.Cut()
	g.gateway.Wait()
	if x.until(lastChunk, patience) {
		t.Error("the stream ended as if it were whole")
	}
	if end := g.books.only(t); end.ParseStatus != modelgate.ParsePartial || end.Cost != startedCost {
		t.Errorf("END %+v, want partial and %d", end, startedCost)
	}
}

// floods sends without end; total is how much went out before a write waited
// for longer than the bound.
func floods(t *testing.T, bound time.Duration, total chan<- int64) *raw {
	return rawUpstream(t, func(conn net.Conn, _ *http.Request) bool {
		_, _ = io.WriteString(conn, reply(eventHead, ""))
		piece := []byte(chunks(events(strings.Repeat("x", 16<<10))))
		sent := int64(0)
		for {
			_ = conn.SetWriteDeadline(time.Now().Add(bound))
			n, err := conn.Write(piece)
			sent += int64(n)
			if err != nil {
				total <- sent
				return false
			}
		}
	})
}

func TestSlowClientHoldsTheProviderBack(t *testing.T) {
	t.Parallel()
	total := make(chan int64, 1)
	u := floods(t, 300*time.Millisecond, total)
	g := open(t, u.URL, plan{})
	g.dial(t, "/v1/chat/completions", streamBody) // and reads nothing
	const most = 64 << 20                         // of buffers in the system; in 300 ms a loopback takes more
	if sent := <-total; sent > most {
		t.Errorf("the provider could send %d bytes to a client that reads none", sent)
	}
}

func TestStuckClientHasLeft(t *testing.T) {
	t.Parallel()
	total := make(chan int64, 1)
	u := floods(t, patience, total)
	g := open(t, u.URL, plan{
		options:   Options{Stuck: 50 * time.Millisecond},
		configure: func(c *provider.Config) { c.OnDisconnect = provider.Cancel },
	})
	g.dial(t, "/v1/chat/completions", streamBody)
	<-total // the gateway has hung up
	if end := g.books.only(t); end.StatusCode != 200 || end.ParseStatus != modelgate.ParsePartial {
		t.Errorf("END %+v, want 200 and partial", end)
	}
	g.gateway.Wait()
}

// A client of which nothing is sent yet has left for good.
func TestLeaving(t *testing.T) {
	t.Parallel()
	var stays, ends cancelctx.Context
	l := disconnectWatcher{upstream: &stays, drains: newDrains(0)}
	l.setPolicy(provider.Cancel)
	l.keepGoing()
	l.left()
	if stays.Cause() != nil || !l.hasLeft() {
		t.Errorf("a call that stays ends with %v, left %v", stays.Cause(), l.hasLeft())
	}
	l = disconnectWatcher{upstream: &ends, drains: newDrains(0)}
	l.left()
	if ends.Cause() == nil {
		t.Error("a call goes on that was not sent")
	}
}

// One organization takes half of the free slots, however many of its clients
// leave, and gives them back.
func TestDrainsAreShared(t *testing.T) {
	t.Parallel()
	d := newDrains(256)
	takes := func(org modelgate.ClientID) (n int) {
		for d.take(org) {
			n++
		}
		return n
	}
	if first, second, third := takes("a"), takes("b"), takes("c"); first != 128 || second != 64 || third != 32 {
		t.Errorf("%d, %d and %d slots, want 128, 64 and 32", first, second, third)
	}
	for range 128 {
		d.give("a")
	}
	if n := takes("b"); n != 48 || d.count() != 64+48+32 {
		t.Errorf("%d more and %d in all, want 48 and 144", n, d.count())
	}
	if d = newDrains(1); !d.take("a") || d.take("a") || d.take("b") {
		t.Error("the only slot is not taken once")
	}
}

// A drain that comes to its time, and a client that finds no slot, leave what
// was delivered in the books.
func TestEndedDrainsAreCharged(t *testing.T) {
	t.Parallel()
	words := strings.Repeat("word ", 400)
	first := reply(eventHead, chunks(events(`{"choices":[{"index":0,"delta":{"content":"`+words+`"}}]}`)))
	for name, o := range map[string]Options{"time": {DrainFor: 30 * time.Millisecond}, "no slot": {MaxDrain: -1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newTwoParts(t, first, "")
			g := open(t, u.URL, plan{options: o})
			g.leaves(t, u, "/v1/chat/completions", streamBody, "word")
			wait(t, u.closed, "hang-up at the provider")
			want := asked(streamBody, "acme/chat", "gpt-x") + 500*2000
			if end := g.books.only(t); end.ParseStatus != modelgate.ParsePartial || end.Cost != want {
				t.Errorf("END %+v, want partial and %d", end, want)
			}
		})
	}
}

// An estimate is never above what the request or the model allows.
func TestEstimatesHaveALimit(t *testing.T) {
	t.Parallel()
	words := strings.Repeat("word ", 4000)
	for body, most := range map[string]int64{
		`{"model":"acme/chat","max_tokens":70,"messages":[]}`:       70,
		`{"model":"acme/chat","max_tokens":70,"n":3,"messages":[]}`: 210,
		`{"model":"acme/bounded","messages":[]}`:                    400,
		`{"model":"acme/bounded","max_tokens":9000,"messages":[]}`:  400,
		`{"model":"acme/chat","max_tokens":90000,"messages":[]}`:    5000,
	} {
		u := rawUpstream(t, saysOnce(reply(eventHead, chunks(events(`{"choices":[{"index":0,"delta":{"content":"`+words+`"}}]}`)))))
		g := open(t, u.URL, plan{})
		_, _, _ = g.do(t, "/v1/chat/completions", body)
		if end := g.books.only(t); end.Usage.Output != most {
			t.Errorf("%s: %d tokens, want %d", body, end.Usage.Output, most)
		}
	}
}

// saysOnce writes a text and hangs up.
func saysOnce(text string) func(net.Conn, *http.Request) bool {
	return func(conn net.Conn, _ *http.Request) bool {
		_, _ = io.WriteString(conn, text)
		return false
	}
}

// A MARK says four fifths at least of what has been passed on, and there are
// few of them.
func TestMarksKeepUp(t *testing.T) {
	t.Parallel()
	event := events(`{"choices":[{"index":0,"delta":{"content":"twelve bytes"}}]}`)
	proceed := make(chan struct{})
	u := rawUpstream(t, func(conn net.Conn, _ *http.Request) bool {
		_, _ = io.WriteString(conn, reply(eventHead, ""))
		for range 3000 {
			_, _ = io.WriteString(conn, chunks(event))
		}
		<-proceed
		return false
	})
	g := open(t, u.URL, plan{})
	x := g.dial(t, "/v1/chat/completions", streamBody)
	_ = x.conn.SetReadDeadline(time.Now().Add(patience))
	for buf := make([]byte, 4096); bytes.Count(x.got, []byte("twelve bytes")) < 2800; { // frames split some
		n, err := x.conn.Read(buf)
		if x.got = append(x.got, buf[:n]...); err != nil {
			t.Fatal("the stream broke off")
		}
	}
	g.books.mu.Lock()
	last, marks := g.books.marks[len(g.books.marks)-1], len(g.books.marks)
	g.books.mu.Unlock()
	if last.Usage.Output < 8400*4/5 || marks > 60 {
		t.Errorf("the last of %d MARKs has %d of 8400 tokens", marks, last.Usage.Output)
	}
	close(proceed)
	g.books.only(t)
}

// What was guessed of calls that were cut does not lower what is reserved.
func TestGuessesDoNotLowerReservations(t *testing.T) {
	t.Parallel()
	r := recentUsage{routes: make(map[routeName]*sample)}
	a := routeName{"p", "m"}
	note := func(output int64, guessed bool) {
		r.note(a, modelgate.LLM, &modelgate.CallEnd{StatusCode: 200, Usage: modelgate.Usage{Output: output}}, guessed)
	}
	note(1000, false)
	for range 2 * recentCalls {
		note(3, true)
	}
	if usual, _ := r.p99Estimate(a); usual != 1000 {
		t.Errorf("%d tokens are usual, want 1000", usual)
	}
	if note(2000, true); func() int64 { n, _ := r.p99Estimate(a); return n }() != 2000 {
		t.Error("a larger guess does not count")
	}
}

// count is how many slots are taken.
func (d *drains) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.taken
}
