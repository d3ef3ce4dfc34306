package http1server_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// replies are handlers whose answers must be those of net/http.
var replies = map[string]http.HandlerFunc{
	"nothing":        func(http.ResponseWriter, *http.Request) {},
	"a status":       func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) },
	"an odd status":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(599) },
	"two statuses":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404); w.WriteHeader(200) },
	"short":          func(w http.ResponseWriter, _ *http.Request) { say(w, "hello") },
	"in pieces":      func(w http.ResponseWriter, _ *http.Request) { say(w, "hel"); say(w, ""); say(w, "lo") },
	"html":           func(w http.ResponseWriter, _ *http.Request) { say(w, "<html>") },
	"no type wanted": func(w http.ResponseWriter, _ *http.Request) { w.Header()["Content-Type"] = nil; say(w, "hello") },
	"compressed": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		say(w, "hello")
	},
	"a type": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		say(w, "{}")
	},
	"a length": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "5")
		say(w, "hello")
	},
	"length 0": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "0")
		w.WriteHeader(502)
	},
	"too short": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "50")
		say(w, "hello")
	},
	"no content": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "3")
		w.WriteHeader(204)
	},
	"not modified": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "a/b")
		w.WriteHeader(304)
	},
	"a body for no content": func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(204)
		if _, err := w.Write([]byte("x")); !errors.Is(err, http.ErrBodyNotAllowed) {
			panic(err)
		}
	},
	"long":        func(w http.ResponseWriter, _ *http.Request) { say(w, strings.Repeat("0123456789", 10_000)) },
	"flushed":     func(w http.ResponseWriter, _ *http.Request) { flush(w); say(w, "hello") },
	"a stream":    func(w http.ResponseWriter, _ *http.Request) { stream(w) },
	"only a head": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(201); flush(w) },
	"a flushed length": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "10")
		say(w, "hello")
		flush(w)
		say(w, "world")
	},
	"late headers": func(w http.ResponseWriter, _ *http.Request) {
		say(w, "hello")
		w.Header().Set("X-Late", "1")
		flush(w)
		w.Header().Set("X-Later", "1")
	},
	"headers": func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["x-odd-Case"] = []string{"1"}
		w.Header()["X-Many"] = []string{"1", "2"}
		w.Header().Set("X-Split", "a\r\nX-Injected: b")
		w.Header()["X Bad\r\nName"] = []string{"1"}
		w.Header().Set("Date", "yesterday")
		say(w, "x")
	},
	"closes": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close"); say(w, "bye") },
	"early hint": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "<a>")
		w.WriteHeader(103)
		say(w, "x")
	},
	"reads": func(w http.ResponseWriter, r *http.Request) { b, err := io.ReadAll(r.Body); fmt.Fprint(w, len(b), err) },
	"reads a part": func(w http.ResponseWriter, r *http.Request) {
		n, err := io.ReadFull(r.Body, make([]byte, 3))
		fmt.Fprint(w, n, err)
	},
	"reads after closing": func(w http.ResponseWriter, r *http.Request) {
		err := r.Body.Close()
		_, late := r.Body.Read(make([]byte, 1))
		fmt.Fprint(w, err, late)
	},
	"request": func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Method, r.URL, r.Proto, r.ProtoMajor, r.ProtoMinor, r.ContentLength, r.Host != "", r.RequestURI, r.RemoteAddr != "",
			r.Close, r.TransferEncoding, r.Header["User-Agent"], r.TLS == nil, r.URL.Query())
	},
	"aborts": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	"panics": func(http.ResponseWriter, *http.Request) { panic("x") },
	"aborts later": func(w http.ResponseWriter, _ *http.Request) {
		say(w, "half")
		flush(w)
		say(w, "lost")
		panic(http.ErrAbortHandler)
	},
	"aborts a length": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "9")
		say(w, "half")
		flush(w)
		panic(http.ErrAbortHandler)
	},
	"deadlines": func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		later := time.Now().Add(time.Hour)
		fmt.Fprint(w, control.SetReadDeadline(later), control.SetWriteDeadline(later), control.SetReadDeadline(time.Time{}), control.Flush())
	},
}

func say(w io.Writer, text string) { _, _ = io.WriteString(w, text) }

func flush(w http.ResponseWriter) { w.(http.Flusher).Flush() }

func stream(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	for i := range 5 {
		fmt.Fprintf(w, "data: %s\n\n", strings.Repeat("x", i*i*1000))
		flush(w)
	}
	say(w, "data: [DONE]\n\n")
}

// seen is an answer as a client sees it.
func seen(resp *http.Response, err error) string {
	if err != nil {
		return "no answer"
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	header := resp.Header.Clone()
	if header.Get("Date") != "yesterday" {
		header.Del("Date")
	}
	text := fmt.Sprintf("%s\n%d %v close %v\n%s\n%v\n", resp.Status, resp.ContentLength, resp.TransferEncoding, resp.Close, body, err != nil)
	for _, name := range slices.Sorted(maps.Keys(header)) {
		text += fmt.Sprintf("%s: %q\n", name, header[name])
	}
	return text
}

// TestReplies holds what the server answers against what net/http answers, for
// requests with and without a body, three times on a connection.
func TestReplies(t *testing.T) {
	t.Parallel()
	handler := func(w http.ResponseWriter, r *http.Request) { replies[r.URL.Query().Get("as")](w, r) }
	standard := httptest.NewUnstartedServer(http.HandlerFunc(handler))
	standard.Config.ErrorLog = silent()
	standard.Start()
	t.Cleanup(standard.Close)
	g := serve(t, handler, nil)
	for name := range replies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, body := range []string{"", "body", strings.Repeat("x", 100<<10)} {
				ask := func(client *http.Client, base string) string {
					defer client.CloseIdleConnections()
					all := ""
					for range 3 {
						target := base + "/?as=" + strings.ReplaceAll(name, " ", "+")
						req, err := http.NewRequest(http.MethodPost, target, strings.NewReader(body))
						if err != nil {
							t.Fatal(err)
						}
						if body == "" {
							req.Body, req.ContentLength = http.NoBody, 0
						}
						all += seen(client.Do(req))
					}
					return all
				}
				want := ask(&http.Client{Transport: &http.Transport{}, Timeout: bound}, standard.URL)
				got := ask(&http.Client{Transport: &http.Transport{}, Timeout: bound}, "http://"+g.addr)
				if got != want {
					t.Errorf("with a body of %d bytes:\n%s\nnet/http:\n%s", len(body), got, want)
				}
			}
		})
	}
}

// TestTooLong: more than an answer's length is refused, and the answer is what
// it said it would be. (net/http closes the connection too, behind the answer,
// so that the next request may be lost.)
func TestTooLong(t *testing.T) {
	t.Parallel()
	g := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "5")
		say(w, "hello")
		if _, err := w.Write([]byte("!")); !errors.Is(err, http.ErrContentLength) {
			t.Errorf("writing more: %v", err)
		}
	}, nil)
	conn := g.dial(t)
	for range 2 {
		conn.send(t, post("/a", ""))
		if _, got := conn.answer(t); got != "hello" {
			t.Errorf("answer %q", got)
		}
	}
}

// TestAnsweredBeforeTheBody: an answer does not wait for a body that nobody
// wants. The connection goes on once all of it has come, and ends where it does
// not come in time.
func TestAnsweredBeforeTheBody(t *testing.T) {
	t.Parallel()
	within := make(chan time.Duration, 2)
	g := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(<-within))
		w.WriteHeader(http.StatusUnauthorized)
	}, nil)
	conn := g.dial(t)
	for _, d := range []time.Duration{bound, 50 * time.Millisecond} {
		within <- d
		conn.send(t, "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf")
		if resp, _ := conn.answer(t); resp.StatusCode != http.StatusUnauthorized || resp.Close {
			t.Errorf("status %d, to be closed %v", resp.StatusCode, resp.Close)
		}
		if d == bound {
			conn.send(t, " more")
		}
	}
	conn.ended(t)
}

// TestBodyBreaksOff is an error of reading.
func TestBodyBreaksOff(t *testing.T) {
	t.Parallel()
	read := make(chan error, 1)
	g := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		read <- err
	}, nil)
	conn := g.dial(t)
	conn.send(t, "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf")
	conn.Close()
	if err := <-read; !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("reading ended with %v", err)
	}
}

// TestStuckClient: a write ends with its deadline, also when that is set from
// beside it; the connection is not used again.
func TestStuckClient(t *testing.T) {
	t.Parallel()
	wrote := make(chan error, 1)
	g := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		control := http.NewResponseController(w)
		time.AfterFunc(50*time.Millisecond, func() { _ = control.SetWriteDeadline(time.Unix(1, 0)) })
		piece := make([]byte, 1<<20)
		for {
			if _, err := w.Write(piece); err != nil {
				wrote <- err
				return
			}
		}
	}, nil)
	conn := g.dial(t)
	conn.send(t, post("/a", ""))
	if err := <-wrote; err == nil {
		t.Error("a client that takes nothing holds the call")
	}
}

// TestLateUse: who still holds an answer that is over can do nothing with it.
func TestLateUse(t *testing.T) {
	t.Parallel()
	kept := make(chan http.ResponseWriter, 2)
	g := serve(t, func(w http.ResponseWriter, _ *http.Request) { kept <- w }, nil)
	conn := g.dial(t)
	for range 2 {
		conn.send(t, post("/a", ""))
		conn.answer(t)
	}
	control := http.NewResponseController(<-kept)
	if control.SetWriteDeadline(time.Unix(1, 0)) == nil || control.SetReadDeadline(time.Unix(1, 0)) == nil || control.Flush() == nil {
		t.Error("an answer that is over takes orders")
	}
	conn.send(t, post("/a", ""))
	conn.answer(t)
}
