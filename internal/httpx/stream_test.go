package httpx_test

import (
	"crypto/tls"
	"encoding/binary"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/httpx"
)

// frame is one of HTTP/2.
func frame(kind, flags byte, stream uint32, payload string) string {
	head := binary.BigEndian.AppendUint32(nil, uint32(len(payload)))[1:]
	head = append(head, kind, flags)
	return string(binary.BigEndian.AppendUint32(head, stream)) + payload
}

// field is a header field as HPACK writes it without a table.
func field(name, value string) string {
	return "\x00" + string(rune(len(name))) + name + string(rune(len(value))) + value
}

// reset reads frames until a stream is reset, and reports whether it was.
func reset(conn io.Reader) bool {
	const rstStream, goAway = 3, 7
	for head := make([]byte, 9); ; {
		if _, err := io.ReadFull(conn, head); err != nil || head[3] == goAway {
			return false
		}
		size := int64(head[0])<<16 | int64(head[1])<<8 | int64(head[2])
		if _, err := io.CopyN(io.Discard, conn, size); err != nil {
			return false
		}
		if head[3] == rstStream {
			return true
		}
	}
}

// TestStreamsAreTaken asks over HTTP/2 and opens no window for the answer. No
// handler, and nothing that a handler has left to the server, waits for such a
// client for ever.
func TestStreamsAreTaken(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path   string
		size   int // of the answer, in bytes
		writes int // of it, until the handler returns
	}{
		"a small answer":                   {"/v1/models", 100, 1},
		"a small answer of the management": {"/gw/me", 100, 1},
		"a large answer of the management": {"/gw/usage", 1 << 20, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			returned := make(chan error, 1)
			options := httpx.Options{IDs: modelgate.NewIDs(time.Now), Log: slog.New(slog.DiscardHandler), MaxBody: 1000, Stall: 200 * time.Millisecond}
			server := httptest.NewUnstartedServer(httpx.Wrap(options, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var err error
				for range c.writes {
					_, err = w.Write(make([]byte, c.size))
				}
				returned <- err
			})))
			server.EnableHTTP2 = true
			server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
			server.StartTLS()
			t.Cleanup(server.Close)
			conn, err := tls.Dial("tcp", server.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close() })
			_ = conn.SetDeadline(time.Now().Add(time.Minute)) // what is stuck must not hang the test
			const noWindow = "\x00\x04\x00\x00\x00\x00"
			request := field(":method", "GET") + field(":scheme", "https") + field(":path", c.path) + field(":authority", "g")
			if _, err := io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+frame(4, 0, 0, noWindow)+frame(1, 5, 1, request)); err != nil {
				t.Fatal(err)
			}
			if !reset(conn) {
				t.Error("the stream is open after a minute")
			}
			select {
			case err := <-returned:
				if (err != nil) != strings.HasPrefix(name, "a large") {
					t.Errorf("the handler's last write: %v", err)
				}
			case <-time.After(time.Minute):
				t.Error("the handler still waits")
			}
		})
	}
}

// TestStreamsThatPause are not ended: only what is being written has to be
// taken within a time, and a handler of the management may work for longer.
func TestStreamsThatPause(t *testing.T) {
	t.Parallel()
	d := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	handler := httpx.Wrap(httpx.Options{IDs: modelgate.NewIDs(time.Now), MaxBody: 1000}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for range 3 {
			if n := len(d.write); n > 0 && !d.write[n-1].IsZero() {
				t.Errorf("between two writes the stream ends at %v", d.write[n-1])
			}
			_, _ = io.WriteString(w, "piece")
			_ = http.NewResponseController(w).Flush()
		}
	}))
	r := httptest.NewRequest("GET", "/gw/evidence", nil)
	r.ProtoMajor = 2
	handler.ServeHTTP(d, r)
	if n := len(d.write); n != 13 || d.write[n-1].IsZero() { // one at the end
		t.Errorf("write deadlines %v", d.write)
	}
}
