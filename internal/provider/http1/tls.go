package http1

import (
	"encoding/binary"
	"io"
	"net"
	"syscall"
)

// tlsRecords is what a TLS connection reads from. It follows the record headers,
// so that it knows whether the TLS connection holds a part of a record, and can be
// read without waiting. Reads come from one goroutine at a time.
type tlsRecords struct {
	net.Conn
	raw     syscall.RawConn // of Conn; nil where it has none
	reading readMode
	head    [tlsHeader]byte // of the record under way
	have    int             // bytes of head
	left    int             // bytes of the record's payload that have not come
}

// tlsHeader is how many bytes a record has before its payload, the last two of
// which are the payload's length (RFC 8446, 5.1).
const tlsHeader = 5

// readMode is what a read does where a TLS connection wants more records.
type readMode uint8

const (
	readWaits   readMode = iota
	readNothing          // it finds nothing
	readAtHand           // it takes what has come
)

func newTLSRecords(conn net.Conn) *tlsRecords { return &tlsRecords{Conn: conn, raw: rawConn(conn)} }

// Read gives the TLS connection the next bytes of its records.
func (t *tlsRecords) Read(b []byte) (n int, err error) {
	switch t.reading {
	case readWaits:
		n, err = t.Conn.Read(b)
	case readNothing:
		return 0, errNothing
	case readAtHand:
		n, err = t.atHand(b)
	}
	t.follow(b[:n])
	return n, err
}

func (t *tlsRecords) atHand(b []byte) (n int, err error) {
	if t.raw == nil {
		return 0, errNothing
	}
	if failed := t.raw.Control(func(fd uintptr) { n, err = readAtOnce(int(fd), b) }); failed != nil {
		return 0, failed
	}
	if n == 0 && err == nil && len(b) > 0 {
		err = io.EOF
	}
	return n, err
}

// follow takes note of where the records in b begin and end.
func (t *tlsRecords) follow(b []byte) {
	for len(b) > 0 {
		if t.have < tlsHeader {
			n := copy(t.head[t.have:], b)
			t.have, b = t.have+n, b[n:]
			if t.have < tlsHeader {
				return
			}
			t.left = int(binary.BigEndian.Uint16(t.head[3:]))
		}
		n := min(t.left, len(b))
		t.left, b = t.left-n, b[n:]
		if t.left == 0 {
			t.have = 0
		}
	}
}

// whole reports whether what was read ends with a record.
func (t *tlsRecords) whole() bool { return t.have == 0 }

// exhausted reports whether the TLS connection is open and has nothing for its reader:
// no rest of a record, no record that was read ahead, no part of one. Records that
// carry no data, such as session tickets, are taken in. With readNothing the
// socket is not asked.
func (c *conn) exhausted(reading readMode) bool {
	c.records.reading = reading
	n, err := c.conn.Read(c.probe[:])
	c.records.reading = readWaits
	// Any other error is the end of the connection.
	return n == 0 && err == errNothing && c.records.whole()
}
