package http1

import (
	"bufio"
	"bytes"
	"io"
	"math"
	"net/http"
	"net/textproto"
	"strconv"
)

// Body is the body of a reply. At its end, or when it is closed, the connection
// goes back to the pool or ends. It belongs to the goroutine that reads it.
type Body struct {
	from    io.Reader
	c       *conn // nil once it is gone
	stop    func() bool
	writing writing
	last    bool // the connection serves no other call
	err     error
	// attended says that Attend uses the socket; the connection is released after
	// that. parted and whole hold what release was told meanwhile.
	attended, parted, whole bool
}

// Read reads what has come, and waits for it outside of Attend. The error is io.EOF
// at the end of the reply, else an *Unreachable, and stays the same once there was
// one.
func (b *Body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if b.c == nil {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.from.Read(p)
	if err == errNothing {
		return n, nil
	}
	if err != nil {
		whole := err == io.EOF
		if !whole {
			err = Unreached(err)
		}
		b.err = err
		b.release(whole)
	}
	return n, err
}

// Attend calls ready whenever something has come that is not read yet, the end
// or an error among it, until ready returns false. ready reads once, into
// memory that it needs only then: streams mostly wait. A read in it may find
// nothing, which is 0 and no error.
func (b *Body) Attend(ready func() bool) {
	for more := true; more; {
		if _, own := b.from.(*chunked); own && b.err == nil && b.c != nil && b.c.plain() {
			more = b.attend(ready)
		} else {
			more = ready()
		}
	}
}

func (b *Body) attend(ready func() bool) (more bool) {
	b.attended = true
	defer func() {
		b.attended = false
		if b.parted {
			b.release(b.whole)
		}
	}()
	return b.c.attend(ready)
}

// Close gives up what has not been read. It comes from the goroutine that reads.
func (b *Body) Close() error {
	b.release(b.from == http.NoBody)
	return nil
}

// release gives up the connection. It returns to the pool if the reply came whole and
// nothing followed it.
func (b *Body) release(whole bool) {
	c := b.c
	if c == nil {
		return
	}
	if b.attended {
		b.parted, b.whole = true, whole
		return
	}
	b.c = nil
	if b.stop() && whole && !b.last && !c.spoiled && b.writing.done() && c.clear() {
		c.home.keep(c)
		return
	}
	c.end()
}

// direct reads what the header's buffer holds, then past it.
func (c *conn) direct(p []byte) (int, error) {
	if c.r.Buffered() > 0 {
		return c.r.Read(p)
	}
	return c.Read(p)
}

// lengthBody is a body of known length, above 0.
type lengthBody struct {
	c    *conn
	left int64
}

func (b *lengthBody) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := b.c.direct(p[:min(int64(len(p)), b.left)])
	switch b.left -= int64(n); {
	case b.left == 0:
		err = io.EOF
	case err == io.EOF:
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

const (
	// maxChunkLine bounds the line before a chunk, maxTrailer what follows the
	// last one, in bytes.
	maxChunkLine = 4 << 10
	maxTrailer   = 4 << 10
	// maxChunkExcess bounds what is neither data nor to be expected with it.
	maxChunkExcess = 16 << 10
)

// chunked is a body in chunks (RFC 9112, 7.1). What the connection gives is
// read into the caller's own memory and taken out of its chunks there, so one
// read takes as much as has come. Like net/http's, it accepts no bare LF, no
// stray CR and no absurd size, and bounds what is not data.
type chunked struct {
	c       *conn
	state   chunkState
	size    uint64 // read so far, or left of the data
	digits  int    // of the size
	line    int    // bytes of the line under way
	excess  int64
	trailer []byte
}

// chunkState is what the next byte belongs to.
type chunkState uint8

const (
	chunkSize  chunkState = iota
	chunkSpace            // white space after the size
	chunkExtension
	chunkLF
	chunkData
	chunkDataCR
	chunkDataLF
	chunkTrailer
)

func (b *chunked) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for all := 0; ; {
		ahead := b.c.r.Buffered() > 0
		n, err := b.c.direct(p[all:])
		data, used, end := b.decode(p[all : all+n])
		all += data
		switch {
		case end == io.EOF && used < n:
			// More than was asked for: the connection must not serve another call.
			b.c.spoiled = true
			return all, io.EOF
		case end != nil:
			return all, end
		case err == io.EOF:
			return all, io.ErrUnexpectedEOF
		case err != nil || all == len(p):
			return all, err
		case all > 0 && !(ahead && b.state == chunkData):
			// Only a chunk that the header's buffer cut is waited for, so that
			// what came together is passed on together.
			return all, nil
		}
	}
}

// decode moves the data in p to its front and returns how much that is, and
// how many bytes of p were used: fewer only after the end, which is io.EOF.
func (b *chunked) decode(p []byte) (data, used int, err error) {
	for used < len(p) {
		if b.state == chunkData {
			n := int(min(b.size, uint64(len(p)-used)))
			if data != used {
				copy(p[data:], p[used:used+n])
			}
			data, used = data+n, used+n
			if b.size -= uint64(n); b.size == 0 {
				b.state = chunkDataCR
			}
			continue
		}
		c := p[used]
		used++
		if err := b.frame(c); err != nil {
			return data, used, err
		}
	}
	return data, used, nil
}

// frame takes a byte that is not data.
func (b *chunked) frame(c byte) error {
	switch b.state {
	case chunkDataCR:
		b.state = chunkDataLF
		return expectByte(c, '\r')
	case chunkDataLF:
		b.state, b.size, b.digits, b.line = chunkSize, 0, 0, 0
		return expectByte(c, '\n')
	case chunkLF:
		if c != '\n' {
			return errChunked
		}
		return b.begin()
	case chunkTrailer:
		return b.trail(c)
	}
	if b.line++; b.line >= maxChunkLine {
		return errChunked
	}
	switch {
	case c == '\r' && b.digits > 0:
		b.state = chunkLF
	case c == '\r' || c == '\n':
		return errChunked
	case b.state == chunkExtension:
	case c == ';' && b.state == chunkSize && b.digits > 0:
		b.state = chunkExtension
	case (c == ' ' || c == '\t') && b.digits > 0:
		b.state = chunkSpace
	case b.state == chunkSpace || b.digits == 16:
		return errChunked
	default:
		digit, err := strconv.ParseUint(string(rune(c)), 16, 4)
		if err != nil {
			return errChunked
		}
		b.size = b.size<<4 | digit
		b.digits++
	}
	return nil
}

func expectByte(c, want byte) error {
	if c != want {
		return errChunked
	}
	return nil
}

// begin starts the chunk whose line has ended. A sender may put each byte in a
// chunk of its own, but not hide arbitrary amounts between the data.
func (b *chunked) begin() error {
	b.excess += int64(b.line) + 1 - 16 // the line's CR is counted in it
	b.excess = max(0, b.excess-2*int64(min(b.size, 1<<32)))
	if b.excess > maxChunkExcess || b.size > math.MaxInt64/2 {
		return errChunked
	}
	b.state = chunkData
	if b.size == 0 {
		b.state = chunkTrailer
	}
	return nil
}

// trail takes a byte after the last chunk. io.EOF is the end of the body.
// Trailers are of no use to anybody, but have to be headers.
func (b *chunked) trail(c byte) error {
	b.trailer = append(b.trailer, c)
	switch {
	case c == '\n' && !bytes.HasSuffix(b.trailer, []byte("\r\n")):
		return errChunked
	case string(b.trailer) == "\r\n":
		return io.EOF
	case bytes.HasSuffix(b.trailer, []byte("\r\n\r\n")):
		if _, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(b.trailer))).ReadMIMEHeader(); err != nil {
			return errChunked
		}
		return io.EOF
	case len(b.trailer) >= maxTrailer:
		return errChunked
	}
	return nil
}
