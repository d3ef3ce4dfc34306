package security

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"modelgate/test/testkit"
)

// usage is the row of a call.
type usage struct {
	Cost        json.Number `json:"cost_usd"`
	Tokens      int64       `json:"total_tokens"`
	Status      int         `json:"status_code"`
	ParseStatus string      `json:"parse_status"`
	Provider    string      `json:"provider"`
}

// row is the one row of a call, by its request id. Under load, and after a
// client has left, it may be a while until it is there.
func (l *lab) row(t testing.TB, key, id string) usage {
	t.Helper()
	var rows []usage
	eventually(t, "the row of "+id, patience, func() bool {
		rows = nil
		a := l.call(t, key, "GET", "/gw/usage?id="+id, "")
		return json.Unmarshal([]byte(a.body), &rows) == nil && len(rows) == 1
	})
	if len(rows) != 1 {
		t.Fatalf("%d rows of %s", len(rows), id)
	}
	return rows[0]
}

// zipped is as many members of a gzip stream, each of so many zeros, which
// readers take for one text. One member is compressed, for that takes its time.
func zipped(zeros, members int) *bytes.Buffer {
	var one bytes.Buffer
	w := gzip.NewWriter(&one)
	_, _ = w.Write(make([]byte, zeros)) // a buffer takes everything
	_ = w.Close()
	return bytes.NewBuffer(bytes.Repeat(one.Bytes(), members))
}

// TestDecompressionBombsInReplies answers with a gigabyte in a megabyte.
func TestDecompressionBombsInReplies(t *testing.T) {
	t.Parallel()
	l := newLabAlone(t, "s19")
	bomb := zipped(4<<20, 256)
	if bomb.Len() > 2<<20 {
		t.Fatalf("the bomb has %d bytes", bomb.Len())
	}
	l.provider.corner("s19").replies(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(bomb.Bytes())
	})
	before := memory(t, l.Pid())
	for _, path := range []string{"/v1/chat/completions", "/s19/v1/chat/completions"} {
		a := l.call(t, l.key, "POST", path, chat("lab/s19"))
		if a.StatusCode != 200 || a.body != bomb.String() {
			t.Errorf("%s: %d with %d bytes, want the provider's %d", path, a.StatusCode, len(a.body), bomb.Len())
		}
		if r := l.row(t, l.key, a.Header.Get("X-Gateway-Request-Id")); r.ParseStatus != "unknown" && r.ParseStatus != "partial" {
			t.Errorf("%s: row %+v", path, r)
		}
	}
	if grown := memory(t, l.Pid()) - before; grown > 96<<20 {
		t.Errorf("the bomb took %d MiB", grown>>20)
	}
}

// TestEndlessReplies streams more than a gigabyte, without an end of line in
// the middle, to a client that reads slowly at first. The gigabyte is let
// through, and takes no memory.
func TestEndlessReplies(t *testing.T) {
	t.Parallel()
	l := newLabAlone(t, "s20")
	piece := bytes.Repeat([]byte("x"), 1<<20)
	l.provider.corner("s20").replies(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: ")
		for range 1100 {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
		_, _ = io.WriteString(w, "\n\ndata: [DONE]\n\n")
	})
	before := memory(t, l.Pid())
	req, err := http.NewRequest("POST", l.URL+"/v1/chat/completions", strings.NewReader(`{"model":"lab/s20","stream":true,"messages":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", l.key)
	resp, err := client.Transport.RoundTrip(req) // a gigabyte takes what it takes
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, peak := int64(0), int64(0)
	for i := 0; ; i++ {
		n, err := io.CopyN(io.Discard, resp.Body, 4<<20)
		got += n
		peak = max(peak, memory(t, l.Pid()))
		if i < 10 {
			time.Sleep(20 * time.Millisecond)
		}
		if err != nil {
			break
		}
	}
	if got > 1<<30 || got < 1023<<20 || peak-before > 96<<20 {
		t.Errorf("%d MiB came through and took %d MiB of memory", got>>20, (peak-before)>>20)
	}
	eventually(t, "the log says that the reply was cut", patience, func() bool { return strings.Contains(l.Log(), "reply cut: it is too long") })
	if r := l.row(t, l.key, resp.Header.Get("X-Gateway-Request-Id")); r.ParseStatus != "partial" {
		t.Errorf("row %+v, want partial", r)
	}
}

// TestHostileFigures lets a provider state usage that is no usage. What is
// booked has a bound and is never a credit.
func TestHostileFigures(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	corner := l.provider.corner("s47")
	const most = 1e12 // tokens that one figure may state
	for _, figure := range []string{
		"-1", "-1e18", "1e308", "1e400", "-1e400", "9223372036854775807", "9223372036854775808", "18446744073709551616", "1.5", "0.1", "-0", "1e-5", "true", "null", `"12"`, `"-12"`, `"NaN"`, `"1e999"`, `"0x10"`,
		"{}", "[]", "[1]", `{"value":5}`, strings.Repeat("9", 400), `"` + strings.Repeat("9", 400) + `"`, "1E5", "1_000", "NaN", "Infinity", "00012", "+5", `"\u0035"`,
	} {
		for _, shape := range []string{
			`{"usage":{"prompt_tokens":%s,"completion_tokens":4,"total_tokens":9}}`, `{"usage":{"prompt_tokens":3,"completion_tokens":%s}}`, `{"usage":{"prompt_tokens":3,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":%s}}}`,
			`{"usage":{"prompt_tokens":%[1]s,"completion_tokens":%[1]s,"total_tokens":%[1]s}}`, `{"usage":%s}`, `{"usage":{"prompt_tokens":3,"completion_tokens":4},"usage":{"prompt_tokens":%s}}`,
		} {
			reply := fmt.Sprintf(shape, figure)
			corner.replies(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, reply)
			})
			if a := l.call(t, l.key, "POST", "/v1/chat/completions", chat("lab/s47")); a.StatusCode != 200 || a.body != reply {
				t.Errorf("%s: %s", reply, a)
			}
		}
	}
	var rows []usage
	eventually(t, "the rows", patience, func() bool {
		a := l.call(t, l.key, "GET", "/gw/usage?provider=s47&limit=1000", "")
		rows = nil
		return json.Unmarshal([]byte(a.body), &rows) == nil && len(rows) == 32*6
	})
	for _, r := range rows {
		cost, ok := new(big.Rat).SetString(r.Cost.String())
		if !ok || cost.Sign() < 0 || cost.Cmp(big.NewRat(3*most/1e6, 1)) > 0 || r.Tokens < 0 || r.Tokens > 3*most || strings.ContainsAny(r.Cost.String(), "eE") {
			t.Errorf("row %+v", r)
		}
	}
	if out, errs, code := l.Run("reconcile", "--config", l.ConfigFile); code != 0 {
		t.Errorf("reconcile: %s%s", out, errs)
	}
}

// frame is one of HTTP/2.
func frame(kind, flags byte, stream uint32, payload string) string {
	head := binary.BigEndian.AppendUint32(nil, uint32(len(payload)))[1:]
	head = append(head, kind, flags)
	return string(binary.BigEndian.AppendUint32(head, stream)) + payload
}

const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"

// field is a header field as HPACK writes it without a table.
func field(name, value string) string {
	return "\x00" + string(rune(len(name))) + name + string(rune(len(value))) + value
}

// TestHTTP2Floods resets streams as fast as it can, sends header blocks
// that do not end, and settings and pings without number.
func TestHTTP2Floods(t *testing.T) {
	t.Parallel()
	t.Run("TLS", func(t *testing.T) {
		t.Parallel()
		certFile, keyFile := testkit.Certificate(t)
		g := testkit.StartGateway(t, testkit.GatewayOptions{Server: fmt.Sprintf("tls: {cert_file: %q, key_file: %q}, admin_listen: \"127.0.0.1:0\"", certFile, keyFile)})
		insecure := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}
		floods(t, g, "https://", &http.Transport{TLSClientConfig: insecure, ForceAttemptHTTP2: true}, func(address string) (net.Conn, error) { return tls.Dial("tcp", address, insecure) })
	})
	t.Run("prior knowledge", func(t *testing.T) {
		t.Parallel()
		g := testkit.StartGateway(t, testkit.GatewayOptions{Server: `http: standard, admin_listen: "127.0.0.1:0"`})
		transport := &http.Transport{Protocols: new(http.Protocols)}
		transport.Protocols.SetUnencryptedHTTP2(true)
		floods(t, g, "http://", transport, func(address string) (net.Conn, error) { return net.Dial("tcp", address) })
	})
}

// floods is TestHTTP2Floods at one gateway.
func floods(t *testing.T, g *testkit.Gateway, scheme string, transport *http.Transport, dial func(address string) (net.Conn, error)) {
	t.Helper()
	key, _ := g.NewKey(g.NewClient("floods"))
	address := strings.TrimPrefix(g.URL, "http://")
	base := scheme + address
	t.Cleanup(transport.CloseIdleConnections)
	call := func(ctx context.Context, body string) (int, string) {
		req, err := http.NewRequestWithContext(ctx, "POST", base+"/openai/v1/chat/completions", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", key)
		resp, err := transport.RoundTrip(req)
		if err != nil {
			return 0, ""
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode, resp.Proto
	}
	if status, proto := call(t.Context(), chat("m")); status != 200 || proto != "HTTP/2.0" {
		t.Fatalf("an honest call: %d by %s", status, proto)
	}
	if status, _ := call(t.Context(), padded("m", bound+1)); status != 413 {
		t.Errorf("a body past the bound: %d", status)
	}
	before := memory(t, g.Pid())
	request := field(":method", "POST") + field(":scheme", strings.TrimSuffix(scheme, "://")) + field(":path", "/openai/v1/chat/completions") + field(":authority", "g") + field("authorization", key)
	floods := map[string]func(i uint32) string{
		"rapid reset": func(i uint32) string {
			return frame(1, 4, 2*i+1, request) + frame(3, 0, 2*i+1, "\x00\x00\x00\x08")
		},
		"endless continuation": func(i uint32) string {
			if i == 0 {
				return frame(1, 0, 1, request)
			}
			return frame(9, 0, 1, field("x", strings.Repeat("a", 100)))
		},
		"settings": func(uint32) string { return frame(4, 0, 0, "\x00\x03\x00\x00\x00\x01") },
		"pings":    func(uint32) string { return frame(6, 0, 0, "12345678") },
		"streams that stay": func(i uint32) string {
			return frame(1, 4, 2*i+1, request)
		},
		"empty data":     func(i uint32) string { return frame(1, 4, 2*i+1, request) + frame(0, 0, 2*i+1, "") },
		"window of zero": func(i uint32) string { return frame(8, 0, 0, "\x00\x00\x00\x00") },
		"dependency": func(i uint32) string {
			return frame(2, 0, 2*i+1, "\x00\x00\x00\x01\x10")
		},
	}
	var all sync.WaitGroup
	for _, flood := range floods {
		for range 4 {
			conn, err := dial(address)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close() })
			go func() { _, _ = io.Copy(io.Discard, conn) }()
			all.Go(func() {
				_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
				_, err := io.WriteString(conn, preface)
				for i := uint32(0); i < 5000 && err == nil; i++ {
					_, err = io.WriteString(conn, flood(i))
				}
			})
		}
	}
	slow := 0
	for range 30 {
		began := time.Now()
		if status, _ := call(t.Context(), chat("m")); status != 200 {
			t.Errorf("an honest call beside the floods: %d", status)
		}
		if time.Since(began) > 8*time.Second {
			slow++
		}
	}
	all.Wait()
	for range 300 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		call(ctx, chat("m"))
		cancel()
	}
	if status, _ := call(t.Context(), chat("m")); status != 200 || slow > 3 {
		t.Errorf("afterwards: %d; %d of 30 calls took more than 8 s", status, slow)
	}
	if grown := memory(t, g.Pid()) - before; grown > 192<<20 {
		t.Errorf("the floods took %d MiB", grown>>20)
	}
}
