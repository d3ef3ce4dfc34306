package httpx_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/httpx"
)

// serve runs a handler behind Wrap on a loopback listener and returns its
// address and what it logs.
func serve(t *testing.T, h http.HandlerFunc) (string, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	server := httptest.NewUnstartedServer(httpx.Wrap(httpx.Options{
		IDs:     modelgate.NewIDs(time.Now),
		Log:     slog.New(slog.NewTextHandler(&log, nil)),
		MaxBody: 1000,
	}, h))
	server.Config.MaxHeaderBytes = 1 << 20
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.Start()
	t.Cleanup(server.Close)
	return server.URL, &log
}

func get(t *testing.T, req *http.Request) (*http.Response, string) {
	t.Helper()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}

func request(t *testing.T, method, url string, body io.Reader) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func TestWrapPutsTheIDOnEveryResponse(t *testing.T) {
	t.Parallel()
	var seen modelgate.UUID
	url, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		seen = httpx.RequestID(w)
		w.WriteHeader(http.StatusNoContent)
	})
	req := request(t, "GET", url, nil)
	req.Header.Set(httpx.RequestIDHeader, "00000000-0000-7000-8000-000000000000")
	res, _ := get(t, req)
	id := res.Header.Get(httpx.RequestIDHeader)
	if u, ok := modelgate.ParseUUID(id); !ok || u != seen || time.Since(u.Time()) > time.Minute {
		t.Errorf("%s = %q, the handler saw %s", httpx.RequestIDHeader, id, seen)
	}
}

func TestWrapRefusesBeforeTheHandler(t *testing.T) {
	t.Parallel()
	url, _ := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") })

	res, body := get(t, request(t, "POST", url, strings.NewReader(strings.Repeat("x", 1001))))
	if res.StatusCode != 413 || body != `{"error":{"type":"request_too_large","message":"request body too large"}}`+"\n" {
		t.Errorf("1001 bytes declared: %d %s", res.StatusCode, body)
	}
	req := request(t, "GET", url, nil)
	req.Header.Set("X-Long", strings.Repeat("x", 33<<10))
	res, body = get(t, req)
	if res.StatusCode != 431 || !strings.Contains(body, `"type":"bad_request"`) || res.Header.Get(httpx.RequestIDHeader) == "" {
		t.Errorf("33 KiB of headers: %d %s", res.StatusCode, body)
	}
}

func TestWrapPassesUpToTheBounds(t *testing.T) {
	t.Parallel()
	url, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if body, err := httpx.ReadBody(r, 1000, nil); err != nil || len(body) != 1000 {
			t.Errorf("ReadBody = %d bytes, %v", len(body), err)
		}
	})
	req := request(t, "POST", url, strings.NewReader(strings.Repeat("x", 1000)))
	req.Header.Set("X-Long", strings.Repeat("x", 31<<10))
	if res, _ := get(t, req); res.StatusCode != 200 {
		t.Errorf("status %d, want 200", res.StatusCode)
	}
}

func TestFenceAnswersAPanic(t *testing.T) {
	t.Parallel()
	const secret = "gw_live_in_a_panic"
	for name, value := range map[string]any{"text": secret, "error": errors.New(secret)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, log := serve(t, func(http.ResponseWriter, *http.Request) { panic(value) })
			res, body := get(t, request(t, "GET", url+"/gw/"+secret, nil))
			if res.StatusCode != 500 || body != `{"error":{"type":"internal_error","message":"internal error"}}`+"\n" {
				t.Errorf("answer: %d %s", res.StatusCode, body)
			}
			if text := log.String(); strings.Contains(text, secret) || !strings.Contains(text, res.Header.Get(httpx.RequestIDHeader)) {
				t.Errorf("log: %s", text)
			}
		})
	}
}

func TestFenceCutsAnAnswerThatHasBegun(t *testing.T) {
	t.Parallel()
	for name, reason := range map[string]any{"panic": "x", "abort": http.ErrAbortHandler} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, "half")
				w.(http.Flusher).Flush()
				panic(reason)
			})
			res, err := http.DefaultClient.Do(request(t, "GET", url, nil))
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if body, err := io.ReadAll(res.Body); err == nil || string(body) != "half" {
				t.Errorf("body %q, %v; want half of it and an error", body, err)
			}
		})
	}
}

func TestAbortWithoutAnAnswerIsNoAnswer(t *testing.T) {
	t.Parallel()
	url, log := serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	if res, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
		t.Errorf("status %d, want a cut connection", res.StatusCode)
	}
	if log.Len() > 0 {
		t.Errorf("log: %s", log)
	}
}

func TestInformationalStatusIsNoAnswer(t *testing.T) {
	t.Parallel()
	url, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		panic("x")
	})
	if res, _ := get(t, request(t, "GET", url, nil)); res.StatusCode != 500 {
		t.Errorf("status %d, want 500", res.StatusCode)
	}
}
