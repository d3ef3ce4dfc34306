package main

import (
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// roleVariable makes a child process of this program one of the servers.
const (
	roleVariable     = "MODELGATE_BENCH_ROLE"
	upstreamVariable = "MODELGATE_BENCH_UPSTREAM"
	tlsVariable      = "MODELGATE_BENCH_TLS" // the upstream's address with TLS
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
		like := httptest.NewTLSServer(nil)
		like.Close()
		return serveUpstream(tls.NewListener(listener, &tls.Config{Certificates: like.TLS.Certificates}))
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

// trustProvider makes all processes trust the provider, whose certificate for
// 127.0.0.1 is that of every test server.
func trustProvider(dir string) error {
	like := httptest.NewTLSServer(nil)
	like.Close()
	file := filepath.Join(dir, "certificate.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: like.Certificate().Raw})
	return errors.Join(os.WriteFile(file, text, 0o600), os.Setenv("SSL_CERT_FILE", file))
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
