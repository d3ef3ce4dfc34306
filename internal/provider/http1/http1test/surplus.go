package http1test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
)

// Forged is a whole reply that nobody asked for.
const Forged = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"

// SurplusPeer answers with the Writes last set, each a record of its own and all
// in one segment, but calls of /mine with their own body.
type SurplusPeer struct {
	*Peer
	Writes atomic.Pointer[[]string]
}

// NewSurplusPeer is a peer over TLS of a version, 0 for plain TCP.
func NewSurplusPeer(t testing.TB, version uint16) *SurplusPeer {
	s := &SurplusPeer{}
	s.Peer = Layout{Version: version}.Peer(t, func(conn net.Conn, r *http.Request) bool {
		if r.URL.Path != "/early" {
			b, _ := io.ReadAll(r.Body)
			if r.URL.Path == "/mine" {
				_, err := fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(b), b)
				return err == nil
			}
		}
		c := conn.(*Conn)
		c.Below.Held = true
		for _, text := range *s.Writes.Load() {
			if _, err := io.WriteString(c.Conn, text); err != nil {
				return false
			}
		}
		err := c.Below.Release()
		if r.URL.Path == "/early" {
			_, _ = io.Copy(io.Discard, r.Body)
		}
		return err == nil
	})
	return s
}
