package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"time"
)

// roleVariable makes a child process of this program one of the servers.
const (
	roleVariable     = "MODELGATE_BENCH_ROLE"
	upstreamVariable = "MODELGATE_BENCH_UPSTREAM"
	tlsVariable      = "MODELGATE_BENCH_TLS" // the folder of the certificate, or the upstream's address with TLS
)

// overTLS begins the paths that the bare proxy forwards over TLS.
const overTLS = "/tls"

// serveRole is what a child process does.
func serveRole(role string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "addr=%s\n", listener.Addr())
	switch role {
	case "upstream":
		return serveUpstream(listener)
	case "TLS upstream":
		pair, err := tls.LoadX509KeyPair(certificateFiles(os.Getenv(tlsVariable)))
		if err != nil {
			return err
		}
		return serveUpstream(tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{pair}}))
	}
	plain, secure := bareProxy("http", os.Getenv(upstreamVariable)), bareProxy("https", os.Getenv(tlsVariable))
	return http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path, ok := strings.CutPrefix(r.URL.Path, overTLS); ok {
			r.URL.Path = path
			secure.ServeHTTP(w, r)
			return
		}
		plain.ServeHTTP(w, r)
	}))
}

// bareProxy is the yardstick: the standard library's reverse proxy with a
// tuned transport, and nothing else.
func bareProxy(scheme, upstream string) http.Handler {
	to := &url.URL{Scheme: scheme, Host: upstream}
	return &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to) },
		FlushInterval: -1,
		BufferPool:    &pool{free: make(chan []byte, 512)},
		Transport: &http.Transport{
			MaxIdleConns: 8192, MaxIdleConnsPerHost: 2048, IdleConnTimeout: 90 * time.Second, DisableCompression: true,
		},
	}
}

type pool struct{ free chan []byte }

func (p *pool) Get() []byte {
	select {
	case b := <-p.free:
		return b
	default:
		return make([]byte, 16<<10)
	}
}

func (p *pool) Put(b []byte) {
	select {
	case p.free <- b:
	default:
	}
}
