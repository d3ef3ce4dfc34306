package http1server_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"modelgate/internal/http1server"
	"modelgate/internal/yield"
)

// BenchmarkExchange is a request of 1 KiB and its answer, over loopback, in the
// this server and in net/http's server. The client's part is in both.
func BenchmarkExchange(b *testing.B) {
	answer := []byte(strings.Repeat("x", 1200))
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "1200")
		_, _ = w.Write(answer)
	})
	request := []byte(post("/v1/chat/completions", strings.Repeat("x", 1000)))
	for name, serve := range map[string]func(net.Listener) error{
		"http1server": func(l net.Listener) error {
			return http1server.New(&http.Server{Handler: handler, ReadHeaderTimeout: time.Minute, IdleTimeout: time.Minute}, yield.NewWriteBatcher()).Serve(l)
		},
		"net_http": func(l net.Listener) error { return http.Serve(l, handler) },
	} {
		b.Run(name, func(b *testing.B) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			go func() { _ = serve(l) }() // until the process ends
			b.ReportAllocs()
			before := used(b)
			b.RunParallel(func(pb *testing.PB) {
				conn, err := net.Dial("tcp", l.Addr().String())
				if err != nil {
					b.Error(err)
					return
				}
				defer conn.Close()
				in := bufio.NewReader(conn)
				for pb.Next() {
					if _, err := conn.Write(request); err != nil {
						b.Error(err)
						return
					}
					for {
						line, err := in.ReadSlice('\n')
						if err != nil {
							b.Error(err)
							return
						}
						if len(line) == 2 {
							break
						}
					}
					if _, err := in.Discard(len(answer)); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64(used(b)-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

// used is the processor time of the process so far.
func used(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
