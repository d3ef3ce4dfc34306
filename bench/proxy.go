package main

import (
	"crypto/tls"
	"crypto/x509"
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
	upstreamVariable = "MODELGATE_BENCH_UPSTREAM" // with the name of a link behind it
)

// serveRole is what a child process does.
func serveRole(role string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "addr=%s\n", listener.Addr())
	like := httptest.NewTLSServer(nil)
	like.Close()
	secure := tls.NewListener(listener, &tls.Config{Certificates: like.TLS.Certificates})
	switch role {
	case "upstream":
		return serveUpstream(listener)
	case "TLS upstream":
		return serveUpstream(secure)
	case "HTTP/2 upstream":
		return serveHTTP2(tls.NewListener(listener, &tls.Config{Certificates: like.TLS.Certificates, NextProtos: []string{"h2"}}))
	case "TLS proxy":
		return serveProxy(secure)
	}
	return serveProxy(listener)
}

// serveProxy forwards each call over the link that the path names.
func serveProxy(listener net.Listener) error {
	var to [len(links)]http.Handler
	for l, name := range links {
		scheme := "https"
		if link(l) == overPlain {
			scheme = "http"
		}
		to[l] = bareProxy(scheme, os.Getenv(upstreamVariable+strings.ToUpper(name)), link(l) == overHTTP2)
	}
	return http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for l := overTLS; l <= overHTTP2; l++ {
			if path, ok := strings.CutPrefix(r.URL.Path, "/"+links[l]+"/"); ok {
				r.URL.Path = "/" + path
				to[l].ServeHTTP(w, r)
				return
			}
		}
		to[overPlain].ServeHTTP(w, r)
	}))
}

// The certificate of the provider and of targets that clients call over TLS.
const (
	certificateFile    = "certificate.pem"
	certificateKeyFile = "certificate-key.pem"
)

// makeCertificate writes a certificate for 127.0.0.1, that of every test
// server, and makes all processes trust it.
func makeCertificate(dir string) (*tls.Config, error) {
	like := httptest.NewTLSServer(nil)
	like.Close()
	key, err := x509.MarshalPKCS8PrivateKey(like.TLS.Certificates[0].PrivateKey)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, certificateFile)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: like.Certificate().Raw})
	private := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})
	roots := x509.NewCertPool()
	roots.AddCert(like.Certificate())
	return &tls.Config{RootCAs: roots, ServerName: "example.com", ClientSessionCache: tls.NewLRUClientSessionCache(0)}, errors.Join(
		os.WriteFile(file, certificate, 0o600), os.WriteFile(filepath.Join(dir, certificateKeyFile), private, 0o600), os.Setenv("SSL_CERT_FILE", file))
}

// bareProxy is the yardstick: the standard library's reverse proxy with a
// tuned transport, and nothing else.
func bareProxy(scheme, upstream string, http2 bool) http.Handler {
	to := &url.URL{Scheme: scheme, Host: upstream}
	return &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to) },
		FlushInterval: -1,
		BufferPool:    &pool{free: make(chan []byte, 512)},
		Transport: &http.Transport{
			ForceAttemptHTTP2: http2, MaxIdleConns: 8192, MaxIdleConnsPerHost: 2048, IdleConnTimeout: 90 * time.Second, DisableCompression: true,
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
