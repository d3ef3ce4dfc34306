package http1server

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// hidden hides the system's connection, as a wrapper of TLS does.
type hidden struct{ net.Conn }

// TestInput reads pieces of a connection and holds memory only while some of
// them are not used.
func TestInput(t *testing.T) {
	for name, wrap := range map[string]func(net.Conn) net.Conn{
		"polled": func(c net.Conn) net.Conn { return c },
		"hidden": func(c net.Conn) net.Conn { return hidden{c} },
	} {
		t.Run(name, func(t *testing.T) {
			client, server := tcpPair(t)
			in := input{}
			in.open(wrap(server), &sync.Pool{New: func() any { return new([maxHead]byte) }})
			send := func(text string) {
				if _, err := io.WriteString(client, text); err != nil {
					t.Fatal(err)
				}
			}
			fill := func(want string) {
				t.Helper()
				for string(in.unread()) != want {
					if err := in.fill(); err != nil {
						t.Fatalf("%q, %v; want %q", in.unread(), err, want)
					}
				}
			}
			send("one two")
			fill("one two")
			in.skip(len("one "))
			in.push('!')
			send(" three")
			fill("two! three")
			in.skip(len("two! three"))
			if in.buf != nil {
				t.Error("an empty input holds a buffer")
			}
			in.push('f')
			send("our")
			fill("four")
			in.skip(len("four"))

			if err := server.SetReadDeadline(time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
			if err := in.fill(); !errors.Is(err, os.ErrDeadlineExceeded) || in.buf != nil {
				t.Errorf("after the deadline: %v, a buffer %t", err, in.buf != nil)
			}
			if err := server.SetReadDeadline(time.Time{}); err != nil {
				t.Fatal(err)
			}
			long := strings.Repeat("x", maxHead)
			send(long)
			fill(long)
			if !in.full() {
				t.Error("4 KiB do not fill the input")
			}
			in.release()
			client.Close()
			if err := in.fill(); err != io.EOF || in.buf != nil {
				t.Errorf("at the end: %v, a buffer %t", err, in.buf != nil)
			}
		})
	}
}

// tcpPair is both ends of a connection over loopback.
func tcpPair(t *testing.T) (client, server net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if client, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}
