package e2e

import (
	"bytes"
	"encoding/binary"
	"io"
	"maps"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// valve is one instance's way to PostgreSQL. It counts how often keys are
// looked up, and every statement by its name, and can go dark: then bytes are kept back both ways, connections
// stay open and new ones are taken, as when a network drops packets.
type valve struct {
	server  string
	lookups atomic.Int64

	mu   sync.Mutex
	dark chan struct{} // closed when light comes back; nil: light
	runs map[string]int64
}

// newValve starts a valve and returns the database's URL by way of it.
func newValve(t *testing.T, database string) (*valve, string) {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	v := &valve{server: u.Host, runs: map[string]int64{}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(); v.light() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go v.connect(client)
		}
	}()
	u.Host = l.Addr().String()
	return v, u.String()
}

func (v *valve) darken() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.dark == nil {
		v.dark = make(chan struct{})
	}
}

func (v *valve) light() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.dark != nil {
		close(v.dark)
		v.dark = nil
	}
}

// pass waits for light.
func (v *valve) pass() {
	v.mu.Lock()
	dark := v.dark
	v.mu.Unlock()
	if dark != nil {
		<-dark
	}
}

func (v *valve) connect(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", v.server)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		v.copy(client, server, func([]byte) {})
		client.Close()
		server.Close()
	}()
	read := &statements{queries: map[string]string{}, run: v.ran}
	v.copy(server, client, read.see)
}

// ran counts a statement, whose text ends with its name.
func (v *valve) ran(query string) {
	_, name, _ := strings.Cut(query, "\n-- ")
	if name == "sqlCaller" {
		v.lookups.Add(1)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.runs[name]++
}

// count is how often statements of these names ran.
func (v *valve) count(names ...string) (n int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, name := range names {
		n += v.runs[name]
	}
	return n
}

// all is how often each statement ran, by name; "" is those without one.
func (v *valve) all() map[string]int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return maps.Clone(v.runs)
}

// copy hands pieces on until either side ends.
func (v *valve) copy(to io.Writer, from io.Reader, see func([]byte)) {
	piece := make([]byte, 64<<10)
	for {
		n, err := from.Read(piece)
		v.pass()
		see(piece[:n])
		if _, failed := to.Write(piece[:n]); failed != nil || err != nil {
			return
		}
	}
}

// statements reads what a client of PostgreSQL sends, and tells which query
// runs each time that one does.
type statements struct {
	buffer  []byte
	begun   bool              // past the message without a type
	queries map[string]string // by the name of the prepared statement
	run     func(query string)
}

func (s *statements) see(piece []byte) {
	s.buffer = append(s.buffer, piece...)
	for {
		head := 1 // a byte for the type, which the first message lacks
		if !s.begun {
			head = 0
		}
		if len(s.buffer) < head+4 {
			return
		}
		size := head + int(binary.BigEndian.Uint32(s.buffer[head:]))
		if len(s.buffer) < size {
			return
		}
		if s.begun {
			s.message(s.buffer[0], s.buffer[5:size])
		}
		s.begun, s.buffer = true, s.buffer[size:]
	}
}

func (s *statements) message(kind byte, body []byte) {
	first, rest, _ := bytes.Cut(body, []byte{0})
	second, _, _ := bytes.Cut(rest, []byte{0})
	switch kind {
	case 'P': // name, query
		s.queries[string(first)] = string(second)
	case 'B': // portal, name
		s.run(s.queries[string(second)])
	case 'Q':
		s.run(string(first))
	}
}
