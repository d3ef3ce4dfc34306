package e2e

import (
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"testing"
	"time"
)

// delay is a TCP proxy to a database that hands on every piece of a
// statement late.
type delay struct {
	late atomic.Int64 // nanoseconds
}

// through starts the proxy and returns the database's URL by way of it.
func (d *delay) through(t *testing.T, database string) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	real := u.Host
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go d.connect(client, real)
		}
	}()
	u.Host = l.Addr().String()
	return u.String()
}

// connect passes bytes both ways until either side ends.
func (d *delay) connect(client net.Conn, address string) {
	server, err := net.Dial("tcp", address)
	if err != nil {
		client.Close()
		return
	}
	go func() {
		_, _ = io.Copy(client, server) // an end of either side ends both
		client.Close()
		server.Close()
	}()
	defer client.Close()
	defer server.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if n > 0 {
			time.Sleep(time.Duration(d.late.Load()))
			if _, err := server.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
