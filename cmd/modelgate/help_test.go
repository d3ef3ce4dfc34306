package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// nobody is an address where nobody listens: no port that a test of this
// machine could be given meanwhile.
const nobody = "http://127.0.0.1:1"

// serve is the address of a provider that answers with fn; nil is nobody's.
func serve(t *testing.T, fn http.HandlerFunc) string {
	t.Helper()
	if fn == nil {
		return nobody
	}
	server := httptest.NewServer(fn)
	t.Cleanup(server.Close)
	return server.URL
}
