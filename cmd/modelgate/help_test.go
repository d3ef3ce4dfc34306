package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

// serve is the address of a provider that answers with fn; nil is one where
// nobody listens.
func serve(t *testing.T, fn http.HandlerFunc) string {
	t.Helper()
	if fn != nil {
		server := httptest.NewServer(fn)
		t.Cleanup(server.Close)
		return server.URL
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}
