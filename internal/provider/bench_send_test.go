package provider

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// BenchmarkSend is a round trip of 1 KB to a provider that answers at once,
// over connections of our own and over those of net/http. The provider's side
// is in the figures of both.
func BenchmarkSend(b *testing.B) {
	for name, multiplexed := range map[string]bool{"own": false, "net-http": true} {
		b.Run(name, func(b *testing.B) { benchmarkSend(b, 1000, multiplexed, nil) })
	}
}

// BenchmarkSendTLS is BenchmarkSend over TLS 1.3.
func BenchmarkSendTLS(b *testing.B) {
	secure := httptest.NewTLSServer(nil)
	b.Cleanup(secure.Close)
	for name, multiplexed := range map[string]bool{"own": false, "net-http": true} {
		b.Run(name, func(b *testing.B) { benchmarkSend(b, 1000, multiplexed, secure) })
	}
}

// BenchmarkSendLarge is BenchmarkSend with 100 KB.
func BenchmarkSendLarge(b *testing.B) { benchmarkSend(b, 100_000, false, nil) }

// BenchmarkSendStream reads 40 events that come together, each in a chunk.
func BenchmarkSendStream(b *testing.B) {
	reply := "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n" +
		strings.Repeat("fa\r\ndata: "+strings.Repeat("x", 242)+"\n\n\r\n", 40) + "0\r\n\r\n"
	p := setup(b, Config{Format: "openai", BaseURL: answering(b, []byte(reply), 1000, nil), Credentials: []string{"sk-0123456789"}})
	call := Call{Method: "POST", Path: "/v1/chat/completions", Body: []byte(strings.Repeat("x", 1000)), Header: http.Header{"Content-Type": {"application/json"}}}
	buffer := make([]byte, 32<<10)
	b.ReportAllocs()
	reads := 0
	for b.Loop() {
		a, err := p.Outbound(b.Context(), call)
		if err != nil {
			b.Fatal(err)
		}
		resp, _, err := p.Send(a)
		if err != nil {
			b.Fatal(err)
		}
		for n, all := 0, 0; err == nil; reads++ {
			n, err = resp.Body.Read(buffer)
			if all += n; err != nil && (err != io.EOF || all != 40*250) {
				b.Fatal(all, err)
			}
		}
		resp.Body.Close()
	}
	b.ReportMetric(float64(reads)/float64(b.N), "reads/op")
}

func benchmarkSend(b *testing.B, size int, multiplexed bool, secure *httptest.Server) {
	reply := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-DefaultSeconds: 1260\r\n\r\n%s", strings.Repeat("x", 1260))
	cfg := Config{Format: "openai", BaseURL: answering(b, []byte(reply), size, secure), Credentials: []string{"sk-0123456789"}, HTTP2: multiplexed}
	if secure != nil {
		cfg.CAFile = caFile(b, secure)
	}
	p := setup(b, cfg)
	call := Call{Method: "POST", Path: "/v1/chat/completions", Body: []byte(strings.Repeat("x", size)), Header: http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json"}, "User-Agent": {"OpenAI/Go 3.95.0"},
	}}
	b.ReportAllocs()
	for b.Loop() {
		a, err := p.Outbound(b.Context(), call)
		if err != nil {
			b.Fatal(err)
		}
		resp, _, err := p.Send(a)
		if err != nil {
			b.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, resp.Body); n != 1260 || err != nil {
			b.Fatal(n, err)
		}
		resp.Body.Close()
	}
}

// answering answers every request with the same bytes and allocates little. With
// the certificate of a server it does so over TLS.
func answering(b *testing.B, reply []byte, size int, secure *httptest.Server) (base string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	base = "http://" + l.Addr().String()
	if secure != nil {
		base = "https://" + l.Addr().String()
		l = tls.NewListener(l, &tls.Config{Certificates: secure.TLS.Certificates})
	}
	b.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				in := bufio.NewReader(conn)
				for {
					line, err := in.ReadSlice('\n')
					if err != nil {
						return
					}
					if len(line) > 2 {
						continue
					}
					if _, err := in.Discard(size); err != nil {
						return
					}
					if _, err := conn.Write(reply); err != nil {
						return
					}
				}
			}()
		}
	}()
	return base
}
