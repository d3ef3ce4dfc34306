package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"time"
)

// roleVariable makes a child process of this program one of the servers.
const (
	roleVariable     = "MODELGATE_BENCH_ROLE"
	upstreamVariable = "MODELGATE_BENCH_UPSTREAM"
)

// serveRole is what a child process does.
func serveRole(role string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "addr=%s\n", listener.Addr())
	if role == "upstream" {
		return serveUpstream(listener)
	}
	return http.Serve(listener, bareProxy(os.Getenv(upstreamVariable)))
}

// bareProxy is the yardstick: the standard library's reverse proxy with a
// tuned transport, and nothing else.
func bareProxy(upstream string) http.Handler {
	to := &url.URL{Scheme: "http", Host: upstream}
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
