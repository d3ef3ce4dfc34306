package security

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"modelgate/test/testkit"
)

// drip sends a text a byte a time, with a pause after each, until the
// connection or the text ends.
func drip(conn net.Conn, text string, pause time.Duration) {
	for i := range len(text) {
		if _, err := io.WriteString(conn, text[i:i+1]); err != nil {
			return
		}
		time.Sleep(pause)
	}
}

// gone waits until the other side has closed a connection, and returns how
// long that took.
func gone(conn net.Conn, within time.Duration) (time.Duration, bool) {
	began := time.Now()
	_ = conn.SetReadDeadline(began.Add(within))
	_, err := io.Copy(io.Discard, conn)
	timeout, ok := err.(net.Error)
	return time.Since(began), !(ok && timeout.Timeout())
}

// TestSlowClients holds connections open in every way a client can: with
// headers that do not end, with bodies that do not come, with and without a
// key. All of them end by themselves, and honest calls go on meanwhile. At full
// size there are five thousand.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	g := testkit.StartGateway(t, testkit.GatewayOptions{})
	l := &lab{Gateway: g}
	l.key, _ = g.NewKey(g.NewClient("slow"))
	honest := func() time.Duration {
		began := time.Now()
		if a := l.call(t, l.key, "POST", "/openai/v1/chat/completions", chat("m")); a.StatusCode != 200 {
			t.Errorf("an honest call: %s", a)
		}
		return time.Since(began)
	}
	scale, pause := 1, 100*time.Millisecond
	if *full {
		scale, pause = 10, time.Second
	}
	var alone []time.Duration
	for range 100 {
		alone = append(alone, honest())
	}
	files := metric(t, g.URL, "process_open_fds")
	long := strings.Repeat("x", 4096)
	head := func(key string) string {
		return fmt.Sprintf("POST /openai/v1/chat/completions HTTP/1.1\r\nHost: g\r\nAuthorization: %s\r\nContent-Type: application/json\r\n", key)
	}
	ways := map[string]struct {
		at   string // sent at once
		slow string // dripped
		n    int
	}{
		"nothing":                  {"", "", 50},
		"half a header":            {"GET / HTTP/1.1\r\nX: ", "", 50},
		"a dripping header":        {"GET / HTTP/1.1\r\n", "X: " + long, 100},
		"a body without a key":     {head("nobody") + "Content-Length: 100\r\n\r\n", "", 50},
		"a chunk without a key":    {head("nobody") + "Transfer-Encoding: chunked\r\n\r\n", "", 20},
		"a body that never comes":  {head(l.key) + "Content-Length: 100\r\n\r\n", "", 50},
		"a body that stops":        {head(l.key) + "Content-Length: 1000000\r\n\r\n{" + long, "", 50},
		"a dripping body":          {head(l.key) + "Content-Length: 4097\r\n\r\n{", long, 50},
		"dripping chunks":          {head(l.key) + "Transfer-Encoding: chunked\r\n\r\n", strings.Repeat("1\r\nx\r\n", 800), 20},
		"a dripping /gw body":      {strings.Replace(head(l.key), "/openai/v1/chat/completions", "/gw/keys", 1) + "Content-Length: 4097\r\n\r\n{", long, 20},
		"an answer is not waited ": {head(l.key) + "Content-Length: 100\r\nExpect: 100-continue\r\n\r\n", "", 20},
	}
	var slow sync.WaitGroup
	for name, way := range ways {
		for range way.n * scale {
			conn := l.dial(t)
			slow.Go(func() {
				_, _ = io.WriteString(conn, way.at)
				go drip(conn, way.slow, pause)
				if took, ended := gone(conn, time.Minute); !ended {
					t.Errorf("%s: the connection is open after %v", name, took)
				}
			})
		}
	}
	done := make(chan struct{})
	go func() { slow.Wait(); close(done) }()
	var took []time.Duration
	for open := true; open; {
		select {
		case <-done:
			open = false
		case <-time.After(50 * time.Millisecond):
			took = append(took, honest())
		}
	}
	slices.Sort(alone)
	slices.Sort(took)
	most := 8 * time.Second // what a busy machine takes for itself
	if *full {
		most = 2*alone[99] + 10*time.Millisecond
	}
	p99 := took[len(took)*99/100]
	t.Logf("%d slow connections: %d honest calls, p50 %v, p99 %v; alone p50 %v, p99 %v", 480*scale, len(took), took[len(took)/2], p99, alone[50], alone[99])
	if len(took) < 5 || p99 > most {
		t.Errorf("%d honest calls beside slow ones, p99 %v, want at most %v", len(took), p99, most)
	}
	eventually(t, "the files of slow clients are closed", patience, func() bool { return metric(t, g.URL, "process_open_fds") < files+50 })
}

// TestConnectionsRunOut opens more connections than there can be. Those
// who were there first are served, and so is the gateway's own need of files.
func TestConnectionsRunOut(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "few-files")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nulimit -n 1024\nexec '"+testkit.Binary(t)+"' \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	g := testkit.StartGateway(t, testkit.GatewayOptions{Binary: script})
	key, _ := g.NewKey(g.NewClient("crowd"))
	conn, in := keep(t, g.URL)
	turn := func() int {
		body := chat("gpt-5-mini")
		fmt.Fprintf(conn, "POST /openai/v1/chat/completions HTTP/1.1\r\nHost: g\r\nAuthorization: %s\r\nContent-Length: %d\r\n\r\n%s", key, len(body), body)
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("a client that was there first: %v", err)
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode
	}
	if status := turn(); status != 200 {
		t.Fatalf("the first call: %d", status)
	}
	g.Upstream.CloseIdle()
	var crowd []net.Conn
	for range 1500 {
		if c, err := net.DialTimeout("tcp", strings.TrimPrefix(g.URL, "http://"), time.Second); err == nil {
			crowd = append(crowd, c)
			_, _ = io.WriteString(c, "GET / HTTP/1.1\r\n")
		}
	}
	for range 20 {
		if status := turn(); status != 200 {
			t.Errorf("among a crowd: %d", status)
		}
	}
	for _, c := range crowd {
		c.Close()
	}
	eventually(t, "a new client after the crowd has left", patience, func() bool {
		resp, err := http.Get(g.URL + "/healthz")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == 200
	})
	for _, bad := range []string{"too many open files", "level=ERROR"} {
		if strings.Contains(g.Log(), bad) {
			t.Errorf("the log has %q", bad)
		}
	}
}

// keep opens a connection that is kept.
func keep(t *testing.T, base string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.DialTimeout("tcp", strings.TrimPrefix(base, "http://"), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn, bufio.NewReader(conn)
}

// TestNoisyNeighbour has one tenant use all it can get: calls far over its
// limits, and as many of the largest bodies as it can open, never finished.
// Another tenant's calls go on, and memory has a bound.
func TestNoisyNeighbour(t *testing.T) {
	t.Parallel()
	g := testkit.StartGateway(t, testkit.GatewayOptions{
		Limits: "requests_per_second: 50, burst: 100, concurrency: 100", Env: []string{"GOMEMLIMIT=400MiB"},
	})
	l := &lab{Gateway: g}
	noisy := g.NewClient("noisy")
	var keys []string
	for range 4 {
		key, _ := g.NewKey(noisy, "--expires-in-seconds", "3600")
		keys = append(keys, key)
	}
	quiet, _ := g.NewKey(g.NewClient("quiet"))
	before := memory(t, g.Pid())
	stop := make(chan struct{})
	var noise sync.WaitGroup
	for i := range 16 {
		noise.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					l.call(t, keys[i%4], "POST", "/openai/v1/chat/completions", chat("m"))
				}
			}
		})
	}
	refused := make(chan int, 1000)
	for i := range 120 {
		conn := l.dial(t)
		noise.Go(func() {
			head := strings.Replace(strings.Replace(l.request("POST", "/openai/v1/chat/completions", ""), "Content-Length: 0", "Content-Length: 10000000", 1), "Bearer ", "Bearer "+keys[i%4], 1)
			_, _ = io.WriteString(conn, head+`{"x":"`+strings.Repeat("x", 9<<20))
			if text := read(conn, 8*time.Second); strings.HasPrefix(text, "HTTP/1.1 ") {
				var status int
				fmt.Sscan(text[9:12], &status)
				refused <- status
			}
		})
	}
	var took []time.Duration
	peak := int64(0)
	for end := time.Now().Add(6 * time.Second); time.Now().Before(end); {
		began := time.Now()
		body := chat("m")
		if len(took)%5 == 4 {
			body = padded("m", 1<<20)
		}
		if a := l.call(t, quiet, "POST", "/openai/v1/chat/completions", body); a.StatusCode != 200 {
			t.Errorf("the quiet tenant: %s", a)
		}
		took = append(took, time.Since(began))
		peak = max(peak, memory(t, g.Pid()))
		time.Sleep(30 * time.Millisecond)
	}
	close(stop)
	noise.Wait()
	slices.Sort(took)
	p99 := took[len(took)*99/100]
	t.Logf("quiet tenant: %d calls, p50 %v, p99 %v; memory %d MiB, at most %d MiB; %d large bodies refused", len(took), took[len(took)/2], p99, before>>20, peak>>20, len(refused))
	if p99 > 10*time.Second {
		t.Errorf("p99 %v", p99)
	}
	if peak > 500<<20 {
		t.Errorf("one tenant's bodies took the gateway to %d MiB", peak>>20)
	}
	for len(refused) > 0 {
		if status := <-refused; status != 429 && status != 503 && status != 400 {
			t.Errorf("a body that is not let in: %d", status)
		}
	}
}
